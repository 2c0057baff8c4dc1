// Axes of a study file. Private to the room.
#pragma once

#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study {

// Reads the value of "axes". Errors are added to `wrong`.
[[nodiscard]] std::vector<Axis> axes_of(const config::Node& node, std::vector<Diagnostic>& wrong);

// {from, to, scale, points, times}. Nothing, and an error in `wrong`, if it is none. `count` is set by `points`.
struct RangeText {
  Range range;
  std::optional<std::int64_t> points;
  std::optional<double> times;
};
[[nodiscard]] std::optional<RangeText> range_of(const config::Node& node, std::vector<Diagnostic>& wrong);

// A mapping of paths to values.
[[nodiscard]] std::vector<Setting> settings_of(const config::Node& node, std::vector<Diagnostic>& wrong);

[[nodiscard]] std::string column_name(std::string_view path);

// An unknown key of a mapping is an error that names the nearest one.
void check_keys(const config::Node& node, const std::vector<std::string>& known, std::vector<Diagnostic>& wrong);

}  // namespace orrery::study
