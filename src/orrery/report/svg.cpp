#include "orrery/report/svg.hpp"

#include <array>

#include <fmt/format.h>

#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

// Okabe and Ito's palette, which readers with colour blindness can tell apart.
constexpr std::array<std::string_view, 8> kColours = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                                      "#CC79A7", "#56B4E9", "#F0E442", "#999999"};

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : printable(words)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

Svg::Svg(double width, double height)
    : body_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
          width, height)) {}

void Svg::rectangle(double x, double y, double width, double height, std::size_t colour) {
  body_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"white\" "
      "stroke-width=\"0.3\"/>\n",
      x, y, width, height, kColours[colour % kColours.size()]);
}

void Svg::line(double x1, double y1, double x2, double y2) {
  body_ +=
      fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"#333\"/>\n", x1, y1, x2, y2);
}

void Svg::curve(std::string_view points, std::size_t colour) {
  body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
                       kColours[colour % kColours.size()]);
}

void Svg::text(double x, double y, std::string_view words) {
  body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", x, y, escaped(words));
}

void Svg::legend(double x, double y, std::size_t colour, std::string_view words) {
  rectangle(x, y - 10.0, 12.0, 12.0, colour);
  text(x + 18.0, y, words);
}

std::string Svg::document() const { return body_ + "</svg>\n"; }

}  // namespace orrery::report
