#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/report/campaign.hpp"
#include "orrery/report/svg.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace of_campaign_picture {
namespace {

constexpr double kLeft = 60.0, kWidth = 800.0;

void draw_bar(Svg& svg, const results::Campaign& campaign, double top) {
  svg.text(kLeft, top - 10.0,
           fmt::format("{} on {}: {:.1f} days, {} of the time useful", campaign.estimate.model,
                       counted(campaign.estimate.devices, "device"), campaign.days.p50, percent(campaign.ettr)));
  double x = kLeft;
  for (std::size_t i = 0; i < campaign.bar.size(); ++i) {
    const auto& part = campaign.bar[i];
    svg.rectangle(x, top, part.share * kWidth, 36.0, i);
    x += part.share * kWidth;
    std::string name = part.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    svg.legend(kLeft + 270.0 * static_cast<double>(i % 3), top + 62.0 + 18.0 * static_cast<double>(i / 3), i,
               fmt::format("{} {} ({:.2f} days)", name, percent(part.share), part.share * campaign.days.p50));
  }
}

void draw_sizes(Svg& svg, const results::Campaign& campaign, double top, double height) {
  if (campaign.by_size.size() < 2) { return; }
  const double first = std::log2(static_cast<double>(campaign.by_size.front().devices));
  const double last = std::log2(static_cast<double>(campaign.by_size.back().devices));
  const auto x_of = [&](double devices) { return kLeft + (std::log2(devices) - first) / (last - first) * kWidth; };
  const auto y_of = [&](double share) { return top + (1.0 - share) * height; };
  svg.text(kLeft, top - 10.0, "share of useful time against the number of devices, at the same failure rate per node");
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg.line(kLeft, y_of(share), kLeft + kWidth, y_of(share));
    svg.text(kLeft - 45.0, y_of(share) + 4.0, percent(share));
  }
  std::string points;
  for (std::size_t i = 0; i < campaign.by_size.size(); ++i) {
    const auto& point = campaign.by_size[i];
    const auto devices = static_cast<double>(point.devices);
    points += fmt::format("{:.2f},{:.2f} ", x_of(devices), y_of(point.ettr));
    if (i % 3 == 0) { svg.text(x_of(devices) - 12.0, top + height + 18.0, grouped(point.devices)); }
  }
  svg.curve(points, 0);
  const double own = x_of(static_cast<double>(campaign.estimate.devices));
  svg.line(own, top, own, top + height);
}

}  // namespace
}  // namespace of_campaign_picture

std::string campaign_svg(const results::Campaign& campaign) {
  using namespace of_campaign_picture;
  Svg svg(kLeft + kWidth + 40.0, 460.0);
  draw_bar(svg, campaign, 40.0);
  draw_sizes(svg, campaign, 220.0, 190.0);
  return svg.document();
}

}  // namespace orrery::report
