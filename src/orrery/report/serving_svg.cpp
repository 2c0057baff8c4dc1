#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/serving.hpp"
#include "orrery/report/svg.hpp"

namespace orrery::report {

namespace of_serving_picture {
namespace {

using results::Serving;
using results::ServingCurve;

constexpr double kLeft = 80.0, kWidth = 560.0, kHeight = 150.0, kRight = 190.0;

struct Series {
  std::string name;
  std::vector<double> values;  // [point]
};

// One diagram above the common axis of loads: logarithmic, so that straight lines are constant ratios.
struct Panel {
  std::string title;
  bool is_time = false;
  std::vector<Series> series;
  std::vector<std::pair<std::string, double>> limits;  // horizontal lines
};

// Positions of values on a logarithmic axis.
class LogAxis {
 public:
  LogAxis(double from, double to, double start, double length)
      : low_(std::log10(from)), high_(std::log10(to)), start_(start), length_(length) {}
  [[nodiscard]] double at(double value) const {
    return high_ > low_ ? start_ + length_ * (std::log10(value) - low_) / (high_ - low_) : start_ + 0.5 * length_;
  }
  [[nodiscard]] bool has(double value) const {
    constexpr double kEdge = 1e-9;
    return std::log10(value) >= low_ - kEdge && std::log10(value) <= high_ + kEdge;
  }
  // 1, 2 and 5 times powers of ten; powers alone over more than three decades.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> list;
    for (int power = static_cast<int>(std::floor(low_)); power <= static_cast<int>(std::ceil(high_)); ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1.0 && high_ - low_ > 3.0) { continue; }
        const double value = factor * std::pow(10.0, power);
        if (has(value)) { list.push_back(value); }
      }
    }
    return list;
  }

 private:
  double low_, high_, start_, length_;
};

std::string shown(const Panel& panel, double value) {
  return panel.is_time ? config::format_seconds(Seconds(value)) : fmt::format("{:.4g}", value);
}

// The range of a panel's values and limits, a tenth of a decade wider on both sides.
std::pair<double, double> range_of(const Panel& panel) {
  double low = 0, high = 0;
  const auto add = [&](double value) {
    if (value <= 0.0) { return; }
    low = low == 0.0 ? value : std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto& series : panel.series) {
    for (const double value : series.values) { add(value); }
  }
  for (const auto& limit : panel.limits) { add(limit.second); }
  constexpr double kMargin = 1.26;
  return low > 0.0 ? std::pair(low / kMargin, high * kMargin) : std::pair(1.0, 10.0);
}

void draw_panel(Svg& svg, const Panel& panel, const std::vector<double>& loads, const LogAxis& x, double top) {
  const auto [low, high] = range_of(panel);
  const LogAxis y(low, high, top + kHeight, -kHeight);
  svg.text(kLeft, top - 8.0, panel.title);
  svg.line(kLeft, top, kLeft, top + kHeight);
  svg.line(kLeft, top + kHeight, kLeft + kWidth, top + kHeight);
  for (const double tick : y.ticks()) {
    svg.line(kLeft - 4.0, y.at(tick), kLeft, y.at(tick));
    svg.text(10.0, y.at(tick) + 4.0, shown(panel, tick));
  }
  for (const double tick : x.ticks()) { svg.line(x.at(tick), top + kHeight, x.at(tick), top + kHeight + 4.0); }
  double legend = top + 14.0;
  for (std::size_t s = 0; s < panel.series.size(); ++s) {
    std::string points;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const double value = panel.series[s].values[i];
      if (value > 0.0) { points += fmt::format("{:.2f},{:.2f} ", x.at(loads[i]), y.at(value)); }
    }
    svg.curve(points, s);
    svg.legend(kLeft + kWidth + 16.0, legend, s, panel.series[s].name);
    legend += 20.0;
  }
  for (const auto& [name, limit] : panel.limits) {
    svg.line(kLeft, y.at(limit), kLeft + kWidth, y.at(limit));
    svg.text(kLeft + kWidth + 16.0, std::max(y.at(limit) + 4.0, legend), name);
    legend = std::max(y.at(limit) + 4.0, legend) + 20.0;
  }
}

template <class Value>
Series series_of(const ServingCurve& curve, const char* name, const Value& value) {
  Series series{name, {}};
  for (const auto& point : curve.points) { series.values.push_back(value(point.result)); }
  return series;
}

Panel times_panel(const ServingCurve& curve, const char* title, std::string_view metric,
                  results::Distribution Serving::* times) {
  Panel panel{title, true, {}, {}};
  panel.series.push_back(series_of(curve, "p50", [&](const Serving& s) { return (s.*times).p50; }));
  panel.series.push_back(series_of(curve, "p99", [&](const Serving& s) { return (s.*times).p99; }));
  for (const auto& level : curve.points.front().result.slo) {
    if (level.metric == metric) { panel.limits.emplace_back("limit of " + level.measure, level.limit_s); }
  }
  return panel;
}

std::vector<Panel> panels_of(const ServingCurve& curve) {
  std::vector<Panel> panels = {times_panel(curve, "time to the first token", "ttft", &Serving::ttft),
                               times_panel(curve, "time per output token", "tpot", &Serving::tpot)};
  Panel rates{"requests per second", false, {}, {}};
  rates.series.push_back(series_of(curve, "served", [](const Serving& s) { return s.requests_per_s; }));
  if (!curve.points.front().result.slo.empty()) {
    rates.series.push_back(series_of(curve, "within the SLO", [](const Serving& s) { return s.goodput_rps; }));
  }
  panels.push_back(std::move(rates));
  return panels;
}

}  // namespace
}  // namespace of_serving_picture

std::string serving_curve_svg(const results::ServingCurve& curve) {
  using namespace of_serving_picture;
  constexpr double kTop = 64.0, kPitch = kHeight + 48.0;
  const std::vector<Panel> panels = curve.points.empty() ? std::vector<Panel>{} : panels_of(curve);
  Svg svg(kLeft + kWidth + kRight, kTop + kPitch * static_cast<double>(panels.size()) + 10.0);
  if (panels.empty()) { return svg.document(); }
  const Serving& first = curve.points.front().result;
  svg.text(kLeft, 24.0, fmt::format("{} on {} of {}", first.model, counted(first.gpus, "GPU"), first.cluster));
  std::vector<double> loads;
  for (const auto& point : curve.points) { loads.push_back(point.load); }
  const LogAxis x(loads.front(), loads.back(), kLeft, kWidth);
  double top = kTop;
  for (const Panel& panel : panels) {
    draw_panel(svg, panel, loads, x, top);
    if (curve.best) {
      svg.line(x.at(loads[*curve.best]), top, x.at(loads[*curve.best]), top + kHeight);
      if (top == kTop) { svg.text(x.at(loads[*curve.best]) - 60.0, top - 24.0, "highest load within the SLO"); }
    }
    top += kPitch;
  }
  const double bottom = top - kPitch + kHeight;
  for (const double tick : x.ticks()) { svg.text(x.at(tick) - 6.0, bottom + 18.0, fmt::format("{:.4g}", tick)); }
  svg.text(kLeft, bottom + 36.0, curve.axis == "rate" ? "load in requests per second" : "load in clients");
  return svg.document();
}

}  // namespace orrery::report
