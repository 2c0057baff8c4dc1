import pathlib
import subprocess
import sys
import tempfile
import unittest

import golden

PROGRAM = """#!/bin/sh
echo "said $1 of $(cat input) in $PWD"
echo '{"wall_s": 0.25, "points_per_s":1.5e6, "comparison_wall_s": 3e-05}'
echo 'compared in 3e-05 s'
echo "1,234 points/s" >&2
echo "400 of 1,200 points, 33 %" >&2
exit 3
"""
EXPECTED = """said 7 of text in <case>
{"wall_s": <t>, "points_per_s":<t>, "comparison_wall_s": <t>}
compared in <t> s
--- stderr
<t> points/s
--- exit 3
"""


class Golden(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.case = self.folder / "cases/one"
        self.case.mkdir(parents=True)
        (self.case / "cmd").write_text("# why it exists\norrery 7\n")
        (self.case / "input").write_text("text")
        (self.folder / "orrery").write_text(PROGRAM)
        (self.folder / "orrery").chmod(0o755)

    def run_golden(self, *options):
        command = [sys.executable, golden.__file__, "--program", self.folder / "orrery", "--cases",
                   self.case.parent, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_a_case_that_prints_what_is_expected_passes(self):
        (self.case / "expected").write_text(EXPECTED)
        self.assertEqual(self.run_golden().returncode, 0)

    def test_a_difference_fails_and_is_shown(self):
        (self.case / "expected").write_text(EXPECTED.replace("said 7", "said 8"))
        done = self.run_golden()
        self.assertEqual(done.returncode, 1)
        self.assertIn("-said 8 of text", done.stdout)
        self.assertIn("+said 7 of text", done.stdout)

    def test_update_writes_what_is_expected(self):
        self.assertEqual(self.run_golden("--update").returncode, 0)
        self.assertEqual((self.case / "expected").read_text(), EXPECTED)

    def test_a_command_that_is_not_orrery_is_refused(self):
        (self.case / "cmd").write_text("ls\n")
        self.assertIn("begins with `orrery`", self.run_golden().stdout)

    def test_missing_line_ends_are_visible(self):
        self.assertEqual(golden.rendered("a", "", 0), "a\n\\ no newline at the end\n--- stderr\n--- exit 0\n")

    def test_no_cases_is_no_error_and_an_unknown_name_is(self):
        (self.case / "cmd").unlink()
        self.assertEqual(self.run_golden().returncode, 0)
        self.assertNotEqual(self.run_golden("two").returncode, 0)


if __name__ == "__main__":
    unittest.main()
