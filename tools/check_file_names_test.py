import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_file_names

HASH = "\x23"  # not written out, so that this file has no comments about files that are not there
TOOL = pathlib.Path(check_file_names.__file__)


class Repository(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "--quiet", root], check=True)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
            return done.stdout.split("\n")[:-1]

    def test_a_file_that_is_gone_is_found_with_its_place(self):
        self.assertEqual(self.check({"src/a.cpp": "int x;\n// see gone.hpp\n"}),
                         ["src/a.cpp:2: gone.hpp is no file of this repository"])
        self.assertEqual(self.check({"page.md": "text\n\n`room/gone.cpp`, a.py"}),
                         ["page.md:3: room/gone.cpp is no file of this repository",
                          "page.md:3: a.py is no file of this repository"])
        self.assertEqual(len(self.check({"a.py": f"x = 1  {HASH} as in b.py\n", "c.yaml": f"{HASH} d.md\nname: e.md\n"})), 2)

    def test_a_name_or_the_end_of_a_path_is_enough_but_not_another_path(self):
        files = {"src/room/there.hpp": "", "src/a.cpp": "// there.hpp, room/there.hpp and src/room/there.hpp\n"}
        self.assertEqual(self.check(files), [])
        self.assertEqual(len(self.check({**files, "b.md": "other/there.hpp"})), 1)

    def test_code_is_not_prose(self):
        self.assertEqual(self.check({"a.cpp": '#include "gone.hpp"\nauto x = "gone.md";\n',
                                     "p.md": "```\ncat gone.yaml\n```\n"}), [])

    def test_names_of_others_are_not_checked(self):
        self.assertEqual(self.check({
            "tools/file_name_exemptions.txt": "# why\ntheir.py: Megatron-LM\n",
            "a.md": "their.py, README.md@744d01e, FILE.yaml, parts/my_gpu.yaml, w.*.md, `_test.cpp`\n",
            "x_test.cpp": ""}), [])


if __name__ == "__main__":
    unittest.main()
