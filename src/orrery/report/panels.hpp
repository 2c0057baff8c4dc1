// Diagrams of lines above a common axis. Private to the room.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/report/svg.hpp"

namespace orrery::report {

// Positions of values, and values for its marks: 1, 2 and 5 times powers of ten, powers alone over more than three
// decades; or 0 and multiples of 1, 2 or 5 times a power of ten.
class Axis {
 public:
  static Axis logarithmic(double from, double to, double start, double length) {
    return {true, from, to, start, length};
  }
  static Axis linear(double from, double to, double start, double length) { return {false, from, to, start, length}; }

  [[nodiscard]] double at(double value) const;
  [[nodiscard]] std::vector<double> ticks() const;
  [[nodiscard]] bool is_logarithmic() const { return logarithmic_; }

 private:
  Axis(bool logarithmic, double from, double to, double start, double length);
  [[nodiscard]] double scaled(double value) const;

  bool logarithmic_;
  double low_, high_, start_, length_;
};

struct Series {
  std::string name;
  std::vector<std::optional<double>> values;  // [point]
};

// One diagram. Times are on a logarithmic axis, so that straight lines are constant ratios.
struct Panel {
  std::string title;
  bool is_time = false, is_logarithmic = false;
  std::vector<Series> series;
  std::vector<std::pair<std::string, double>> limits;  // horizontal lines
};

struct PanelFrame {
  double left = 80.0, width = 560.0, height = 150.0, right = 190.0;  // right: for names
  double top = 64.0, pitch = 198.0;                                  // of the first one; from one to the next
};

// All panels of a picture, with marks of the axis `x` under the last one. `points`: on that axis.
void draw_panels(Svg& svg, const std::vector<Panel>& panels, const std::vector<double>& points, const Axis& x,
                 const PanelFrame& frame, const std::string& axis_name);

}  // namespace orrery::report
