#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/report/panels.hpp"
#include "orrery/report/serving.hpp"

namespace orrery::report {

namespace of_serving_picture {
namespace {

using results::Serving;
using results::ServingCurve;

constexpr PanelFrame kFrame;

Svg picture_of(const std::vector<Panel>& panels) {
  constexpr double kMargin = 10.0;
  return {kFrame.left + kFrame.width + kFrame.right,
          kFrame.top + kFrame.pitch * static_cast<double>(panels.size()) + kMargin};
}

void add_limits(Panel& panel, const Serving& s, std::string_view metric) {
  for (const auto& level : s.slo) {
    if (level.metric == metric) { panel.limits.emplace_back("limit of " + level.measure, level.limit_s); }
  }
}

template <class Value>
Series series_of(const ServingCurve& curve, const char* name, const Value& value) {
  Series series{name, {}};
  for (const auto& point : curve.points) { series.values.emplace_back(value(point.result)); }
  return series;
}

Panel times_panel(const ServingCurve& curve, const char* title, std::string_view metric,
                  results::Distribution Serving::* times) {
  Panel panel{title, true, true, {}, {}};
  panel.series.push_back(series_of(curve, "p50", [&](const Serving& s) { return (s.*times).p50; }));
  panel.series.push_back(series_of(curve, "p99", [&](const Serving& s) { return (s.*times).p99; }));
  add_limits(panel, curve.points.front().result, metric);
  return panel;
}

std::vector<Panel> panels_of(const ServingCurve& curve) {
  std::vector<Panel> panels = {times_panel(curve, "time to the first token", "ttft", &Serving::ttft),
                               times_panel(curve, "time per output token", "tpot", &Serving::tpot)};
  Panel rates{"requests per second", false, true, {}, {}};
  rates.series.push_back(series_of(curve, "served", [](const Serving& s) { return s.requests_per_s; }));
  if (!curve.points.front().result.slo.empty()) {
    rates.series.push_back(series_of(curve, "within the SLO", [](const Serving& s) { return s.goodput_rps; }));
  }
  panels.push_back(std::move(rates));
  return panels;
}

Series line_of(std::string name, const std::vector<double>& values) {
  return {std::move(name), {values.begin(), values.end()}};
}

std::vector<Panel> panels_of(const Serving& s) {
  const results::ServingSeries& over = *s.series;
  Panel first{
      "time to the first token, by arrival", true, true, {{"p50", over.ttft_p50_s}, {"max", over.ttft_max_s}}, {}};
  add_limits(first, s, "ttft");
  std::vector<Panel> panels = {
      std::move(first),
      {"requests", false, false, {line_of("in the system", over.in_system), line_of("waiting", over.waiting)}, {}},
      {"arrivals per second", false, false, {line_of("requests", over.arrivals_per_s)}, {}},
      {"output tokens per second", false, false, {line_of("all answers", over.output_tokens_per_s)}, {}}};
  if (!over.engines.empty()) {
    Panel engines{"engines that are on", false, false, {}, {}};
    for (const auto& pool : over.engines) { engines.series.push_back(line_of(pool.pool, pool.on)); }
    panels.push_back(std::move(engines));
  }
  return panels;
}

}  // namespace
}  // namespace of_serving_picture

std::string serving_curve_svg(const results::ServingCurve& curve) {
  using namespace of_serving_picture;
  const std::vector<Panel> panels = curve.points.empty() ? std::vector<Panel>{} : panels_of(curve);
  Svg svg = picture_of(panels);
  if (panels.empty()) { return svg.document(); }
  svg.text(kFrame.left, 24.0, serving_title(curve.points.front().result));
  std::vector<double> loads;
  for (const auto& point : curve.points) { loads.push_back(point.load); }
  const Axis x = Axis::logarithmic(loads.front(), loads.back(), kFrame.left, kFrame.width);
  draw_panels(svg, panels, loads, x, kFrame, curve.axis == "rate" ? "load in requests per second" : "load in clients");
  if (curve.best) {
    const double best = x.at(loads[*curve.best]);
    const bool has_slo = !curve.points[*curve.best].result.slo.empty();
    svg.text(best - 60.0, kFrame.top - 24.0, has_slo ? "highest load within the SLO" : "highest sustained load");
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const double top = kFrame.top + kFrame.pitch * static_cast<double>(i);
      svg.line(best, top, best, top + kFrame.height);
    }
  }
  return svg.document();
}

std::string serving_run_svg(const results::Serving& s) {
  using namespace of_serving_picture;
  const bool has_times = s.series && s.series->interval_s > 0;
  const std::vector<Panel> panels = has_times ? panels_of(s) : std::vector<Panel>{};
  Svg svg = picture_of(panels);
  svg.text(kFrame.left, 24.0, serving_title(s) + "; " + s.load);
  if (!has_times) { return svg.document(); }
  std::vector<double> middles;
  const double interval = s.series->interval_s;
  for (std::size_t i = 0; i < s.series->waiting.size(); ++i) {
    middles.push_back((static_cast<double>(i) + 0.5) * interval);
  }
  const double end = interval * static_cast<double>(middles.size());
  draw_panels(svg, panels, middles, Axis::linear(0.0, end, kFrame.left, kFrame.width), kFrame,
              "seconds from the first arrival");
  return svg.document();
}

}  // namespace orrery::report
