// Simple pictures: rectangles, lines, text. Private to the room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::report {

class Svg {
 public:
  Svg(double width, double height);

  void rectangle(double x, double y, double width, double height, std::size_t colour);
  void line(double x1, double y1, double x2, double y2);
  // A polyline through points "x,y x,y".
  void curve(std::string_view points, std::size_t colour);
  void text(double x, double y, std::string_view words);
  void legend(double x, double y, std::size_t colour, std::string_view words);
  [[nodiscard]] std::string document() const;

 private:
  std::string body_;
};

}  // namespace orrery::report
