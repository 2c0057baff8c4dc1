// Where the ranks of a plan sit: rank = tp + tp_degree * (dp + dp_degree * pp), device r = rank r.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/network/group.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::parallel {

// The groups that collectives run over.
enum class GroupKind : std::uint8_t {
  tp,         // slices of a layer
  dp,         // replicas
  embedding,  // first and last pipeline stage, which share tied embeddings
  world,      // everybody
};

struct Mesh {
  network::Group tp, dp, embedding, world;
  std::vector<int> transfer_dimension;  // [stage]: outermost dimension crossed from stage i to i + 1 (last: to stage 0)

  [[nodiscard]] const network::Group& group(GroupKind kind) const;
};

// The ranks first, first + stride, ..., degree of them, as extents on the cluster's dimensions.
// Irregular when they do not fill blocks of a dimension evenly.
[[nodiscard]] network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree);

[[nodiscard]] Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan);

}  // namespace orrery::parallel
