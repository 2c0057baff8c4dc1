#include "orrery/estimate/group_shapes.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace orrery::estimate {

namespace {

using parallel::GroupKind;

constexpr std::array<std::pair<std::string_view, GroupKind>, 7> kShown{{{"tp", GroupKind::tp},
                                                                        {"cp", GroupKind::cp},
                                                                        {"ep", GroupKind::ep},
                                                                        {"etp", GroupKind::etp},
                                                                        {"dp", GroupKind::dp},
                                                                        {"expert_dp", GroupKind::expert_dp},
                                                                        {"tables", GroupKind::tables}}};

}  // namespace

std::vector<results::GroupShape> group_shapes(const parallel::Program& program, const hardware::Cluster& cluster) {
  const auto name_of = [&](int dimension) { return cluster.dimensions[static_cast<std::size_t>(dimension)].name; };
  std::vector<results::GroupShape> shapes;
  for (const auto& [name, kind] : kShown) {
    const network::Group& group = program.mesh.group(kind);
    if (group.extents.empty()) { continue; }
    results::GroupShape shape{std::string(name), group.size(), group.regular, {}};
    for (const network::Extent& extent : group.extents) {
      shape.extents.push_back({name_of(extent.dimension), extent.members});
    }
    shapes.push_back(std::move(shape));
  }
  if (program.plan.pp > 1 && !program.mesh.transfer_dimension.empty()) {
    const auto& crossed = program.mesh.transfer_dimension;
    const int outermost = *std::max_element(crossed.begin(), crossed.end());
    shapes.push_back({"pp", program.plan.pp, true, {{name_of(outermost), program.plan.pp}}});
  }
  return shapes;
}

}  // namespace orrery::estimate
