import pathlib
import tempfile
import unittest

import check_links


class CheckLinks(unittest.TestCase):
    def complaints(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/a.md").write_text("# The `plan` verb\n\n## Twice\n\n## Twice\n")
            (root / "README.md").write_text(text)
            return check_links.check(root)

    def test_links_to_what_exists_are_sound(self):
        self.assertEqual(self.complaints("[a](docs/a.md) [b](docs/) ![c](/docs/a.md \"title\")\n[d]: docs/a.md\n"), [])

    def test_a_broken_link_is_named_with_its_line(self):
        self.assertEqual(self.complaints("x\n[a](docs/b.md)\n"), ["README.md:2: docs/b.md does not exist"])
        self.assertEqual(self.complaints("x\n\n[a]: docs/b.md\n"), ["README.md:3: docs/b.md does not exist"])

    def test_anchors_are_headings(self):
        self.assertEqual(self.complaints("# Here\n[a](#here) [b](docs/a.md#the-plan-verb) [c](docs/a.md#twice-1)"), [])
        self.assertEqual(self.complaints("[a](docs/a.md#there)"),
                         ["README.md:1: docs/a.md#there: no such heading in a.md"])

    def test_code_and_the_web_are_left_alone(self):
        self.assertEqual(self.complaints("`[a](b)`\n```\n[a](b)\n```\n[a](https://example.org/b)\n"), [])


if __name__ == "__main__":
    unittest.main()
