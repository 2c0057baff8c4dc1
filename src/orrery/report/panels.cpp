#include "orrery/report/panels.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"

namespace orrery::report {

Axis::Axis(bool logarithmic, double from, double to, double start, double length)
    : logarithmic_(logarithmic), low_(scaled(from)), high_(scaled(to)), start_(start), length_(length) {}

double Axis::scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

double Axis::at(double value) const {
  return high_ > low_ ? start_ + length_ * (scaled(value) - low_) / (high_ - low_) : start_ + 0.5 * length_;
}

std::vector<double> Axis::ticks() const {
  constexpr double kEdge = 1e-9;
  std::vector<double> list;
  if (!logarithmic_) {
    constexpr double kMost = 6.0;
    if (!(high_ > low_)) { return {low_}; }
    const double power = std::pow(10.0, std::floor(std::log10((high_ - low_) / kMost)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step = factor * power;
      if ((high_ - low_) / step <= kMost) { break; }
    }
    for (double tick = std::ceil(low_ / step - kEdge) + 0.0; tick * step <= high_ * (1.0 + kEdge); tick += 1.0) {
      list.push_back(tick * step);
    }
    return list;
  }
  for (int power = static_cast<int>(std::floor(low_)); power <= static_cast<int>(std::ceil(high_)); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1.0 && high_ - low_ > 3.0) { continue; }
      const double value = factor * std::pow(10.0, power);
      if (std::log10(value) >= low_ - kEdge && std::log10(value) <= high_ + kEdge) { list.push_back(value); }
    }
  }
  return list;
}

namespace {

std::string shown(const Panel& panel, double value) {
  return panel.is_time ? config::format_seconds(Seconds(value)) : fmt::format("{:.4g}", value);
}

// Of a panel's values and limits: a tenth of a decade wider on both sides; from 0 where it is not logarithmic.
Axis vertical(const Panel& panel, double bottom, double height) {
  double low = 0, high = 0;
  const auto add = [&](double value) {
    if (value <= 0.0) { return; }
    low = low == 0.0 ? value : std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto& series : panel.series) {
    for (const auto& value : series.values) { add(value.value_or(0.0)); }
  }
  for (const auto& limit : panel.limits) { add(limit.second); }
  constexpr double kMargin = 1.26;
  if (!panel.is_logarithmic) { return Axis::linear(0.0, high > 0.0 ? 1.05 * high : 1.0, bottom, -height); }
  return low > 0.0 ? Axis::logarithmic(low / kMargin, high * kMargin, bottom, -height)
                   : Axis::logarithmic(1.0, 10.0, bottom, -height);
}

void draw_panel(Svg& svg, const Panel& panel, const std::vector<double>& points, const Axis& x, const PanelFrame& frame,
                double top) {
  const double bottom = top + frame.height, right = frame.left + frame.width;
  const Axis y = vertical(panel, bottom, frame.height);
  svg.text(frame.left, top - 8.0, panel.title);
  svg.line(frame.left, top, frame.left, bottom);
  svg.line(frame.left, bottom, right, bottom);
  for (const double tick : y.ticks()) {
    svg.line(frame.left - 4.0, y.at(tick), frame.left, y.at(tick));
    svg.text(10.0, y.at(tick) + 4.0, shown(panel, tick));
  }
  for (const double tick : x.ticks()) { svg.line(x.at(tick), bottom, x.at(tick), bottom + 4.0); }
  double legend = top + 14.0;
  for (std::size_t s = 0; s < panel.series.size(); ++s) {
    std::string line;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& value = panel.series[s].values[i];
      if (!value || (y.is_logarithmic() && *value <= 0.0)) { continue; }
      line += fmt::format("{:.2f},{:.2f} ", x.at(points[i]), y.at(*value));
    }
    svg.curve(line, s);
    svg.legend(right + 16.0, legend, s, panel.series[s].name);
    legend += 20.0;
  }
  for (const auto& [name, limit] : panel.limits) {
    svg.line(frame.left, y.at(limit), right, y.at(limit));
    svg.text(right + 16.0, std::max(y.at(limit) + 4.0, legend), name);
    legend = std::max(y.at(limit) + 4.0, legend) + 20.0;
  }
}

}  // namespace

void draw_panels(Svg& svg, const std::vector<Panel>& panels, const std::vector<double>& points, const Axis& x,
                 const PanelFrame& frame, const std::string& axis_name) {
  double top = frame.top;
  for (const Panel& panel : panels) {
    draw_panel(svg, panel, points, x, frame, top);
    top += frame.pitch;
  }
  const double bottom = top - frame.pitch + frame.height;
  for (const double tick : x.ticks()) { svg.text(x.at(tick) - 6.0, bottom + 18.0, fmt::format("{:.4g}", tick)); }
  svg.text(frame.left, bottom + 36.0, axis_name);
}

}  // namespace orrery::report
