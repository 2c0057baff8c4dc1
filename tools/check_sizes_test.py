import pathlib
import tempfile
import unittest

import check_sizes

SOURCE = """#include <map>
namespace a {
enum class Colour : int { red, green };
struct S : Base<int> {
  int x{3};
  S(int y) : x{y}, z_{f(y)} { g(); }
  bool operator<(const S& other) const { return x < other.x; }
};
// void commented() {
const char* text = "void quoted() {";
constexpr long big = 1'000'000;
template <class T, class = std::enable_if_t<is_x<T>(0)>>
auto long_one(const T& t) -> std::vector<T> {
  if (t) {
    return {};
  }
  auto twice = [](int i) { return 2 * i; };
  return {twice(t)};
}
const std::map<int, int> table = {
    {1, 2},
};
const int now = [] { return 1; }();
}  // namespace a
TEST(Room, law_holds) {
  EXPECT_EQ(R"({")", "{");
}
"""


class CheckSizes(unittest.TestCase):
    def test_functions_are_found_with_their_length(self):
        self.assertEqual(check_sizes.functions(SOURCE),
                         [("S", 6, 1), ("operator<", 7, 1), ("long_one", 12, 8), ("TEST", 25, 3)])

    def complaints(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check_sizes.check(root)

    def test_a_function_of_71_lines_is_too_long_and_of_70_is_not(self):
        def source(lines):
            return "void f() {\n" + "g();\n" * (lines - 2) + "}\n"
        self.assertEqual(self.complaints({"src/a.cpp": source(70)}), ([], []))
        self.assertEqual(self.complaints({"src/a.cpp": source(71)})[0],
                         ["src/a.cpp:1: f has 71 lines, more than 70"])

    def test_a_long_file_is_remarked_on_then_refused(self):
        self.assertEqual(self.complaints({"src/a.hpp": "\n" * 400}), ([], []))
        self.assertEqual(len(self.complaints({"src/a.hpp": "\n" * 401})[1]), 1)
        self.assertEqual(self.complaints({"src/a.hpp": "\n" * 601})[0], ["src/a.hpp: 601 lines, more than 600"])

    def test_an_exemption_holds_only_where_it_is_needed(self):
        table = {"tools/size_exemptions.txt": "# why\nsrc/a.hpp: a table\n"}
        self.assertEqual(self.complaints({"src/a.hpp": "\n" * 601, **table})[0], [])
        self.assertIn("needs no exemption", self.complaints({"src/a.hpp": "\n", **table})[0][0])


if __name__ == "__main__":
    unittest.main()
