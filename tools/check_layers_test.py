import pathlib
import tempfile
import unittest

import check_layers

ROOMS = """# a comment
0 core tl-expected+ tbb
1 config yaml-cpp
2 hardware
2 results
8 apps/cli cli11+
"""


class CheckLayers(unittest.TestCase):
    def complaints(self, files, with_namespace=True):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"cmake/rooms.txt": ROOMS, "src/orrery/core/units.hpp": "", **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                stem = pathlib.Path(path).stem
                own = f"namespace orrery::core::{stem} {{\n" if stem.endswith("_test") and with_namespace else ""
                (root / path).write_text(text + own)
            return check_layers.check(root)

    def assert_sound(self, path, include):
        self.assertEqual(self.complaints({path: f"#include {include}\n"}), [])

    def assert_wrong(self, path, include, part):
        complaints = self.complaints({path: f"// first\n#include {include}\n"})
        self.assertEqual(len(complaints), 1)
        self.assertTrue(complaints[0].startswith(f"{path}:2: "), complaints)
        self.assertIn(part, complaints[0])

    def test_a_room_may_include_itself_and_lower_rooms(self):
        self.assert_sound("src/orrery/config/a.hpp", '"orrery/core/units.hpp"')
        self.assert_sound("src/orrery/core/a.cpp", '"orrery/core/units.hpp"')

    def test_a_room_may_not_include_its_own_level_or_a_higher_one(self):
        files = {"src/orrery/results/r.hpp": "", "src/orrery/hardware/h.cpp": '#include "orrery/results/r.hpp"'}
        self.assertIn("hardware (level 2) includes results (level 2)", self.complaints(files)[0])
        files = {"src/orrery/results/r.hpp": "", "src/orrery/config/c.cpp": '#include "orrery/results/r.hpp"'}
        self.assertIn("lower level", self.complaints(files)[0])

    def test_an_include_is_written_from_the_root_and_exists(self):
        self.assert_wrong("src/orrery/core/a.cpp", '"units.hpp"', "not written from the root")
        self.assert_wrong("src/orrery/core/a.cpp", '"orrery/core/unit.hpp"', "does not exist")

    def test_third_party_headers_stay_in_the_cpp_files_of_their_room(self):
        self.assert_sound("src/orrery/core/a.hpp", "<tl/expected.hpp>")
        self.assert_sound("src/orrery/core/a.cpp", "<oneapi/tbb/info.h>")
        self.assert_wrong("src/orrery/core/a.hpp", "<oneapi/tbb/info.h>", "stays in the .cpp files of core")
        self.assert_wrong("src/orrery/hardware/a.cpp", "<yaml-cpp/yaml.h>", "yaml-cpp stays in config")
        self.assert_sound("apps/cli/main.cpp", "<CLI/CLI.hpp>")

    def test_fmt_and_the_standard_library_are_allowed_everywhere(self):
        self.assert_sound("src/orrery/hardware/a.hpp", "<fmt/format.h>")
        self.assert_sound("src/orrery/hardware/a.hpp", "<vector>")

    def test_test_headers_stay_in_tests(self):
        self.assert_sound("src/orrery/core/a_test.cpp", "<gtest/gtest.h>")
        self.assert_wrong("src/orrery/core/a.cpp", "<gtest/gtest.h>", "belongs in *_test.cpp")

    def test_what_tests_share_stays_in_tests(self):
        shared = {"src/orrery/core/test_dice.hpp": "#include <gtest/gtest.h>\n#include <random>\n"}
        include = '#include "orrery/core/test_dice.hpp"\n'
        self.assertEqual(self.complaints({**shared, "src/orrery/config/a_test.cpp": include}), [])
        self.assertIn("is for tests", self.complaints({**shared, "src/orrery/config/a.cpp": include})[0])

    def test_the_library_neither_prints_nor_reads_the_clock(self):
        self.assert_wrong("src/orrery/core/a.cpp", "<iostream>", "never prints")
        self.assert_wrong("src/orrery/core/a.cpp", "<chrono>", "never reads the clock")
        self.assert_sound("apps/cli/main.cpp", "<chrono>")

    def test_numbers_are_read_without_the_locale(self):
        line = "double value = std::stod(text);  // as typed\n"
        self.assertIn("depends on the locale", self.complaints({"apps/cli/a.cpp": line})[0])
        self.assertEqual(self.complaints({"apps/cli/a_test.cpp": line}), [])
        self.assertEqual(self.complaints({"apps/cli/a.cpp": "// not std::stod(text)\n"}), [])

    def test_tests_are_in_a_namespace_named_after_their_file(self):
        files = {"src/orrery/core/a_test.cpp": "namespace orrery::core {\n"}
        self.assertIn("namespace …::a_test", self.complaints(files, with_namespace=False)[0])
        self.assertEqual(self.complaints(files), [])

    def test_unknown_packages_and_rooms_are_named(self):
        self.assert_wrong("src/orrery/core/a.cpp", "<boost/any.hpp>", "does not know")
        self.assert_wrong("src/orrery/attic/a.cpp", "<vector>", "'attic' is not a room")


if __name__ == "__main__":
    unittest.main()
