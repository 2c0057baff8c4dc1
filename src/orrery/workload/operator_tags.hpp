// Tags of operators. A recompute choice is a set of tags: the backward pass runs the operators with these tags again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace orrery::workload {

enum class OperatorTag : std::uint8_t {
  embedding,             // of tokens, positions and patches
  tables,                // of a recommender, with the all-to-all of looked-up vectors
  interaction,           // of a recommender's vectors
  norm,                  // of the residual stream
  attention_projection,  // input and output projections, rotary positions, norms of heads; in MLA the down-projections
  attention_up_projection,  // in MLA, with rotary positions
  attention_core,  // scores, softmax, dropout, weighted sum, or their fused kernel; with the collectives of context
                   // parallelism inside it
  mixer_core,      // of mixers other than attention: convolution, scan, gate
  mlp_projection,  // of a dense MLP
  mlp_activation,
  router,             // logits, softmax, choice of experts
  expert_exchange,    // permutation, dispatch, combine
  expert_projection,  // of routed experts
  expert_activation,
  shared_expert_projection,
  shared_expert_activation,
  residual,  // bias, dropout, addition
  head,      // logits and loss, MTP projection
};
inline constexpr std::size_t kOperatorTags = 18;

class TagSet {
 public:
  constexpr TagSet() = default;
  constexpr TagSet(std::initializer_list<OperatorTag> tags) {
    for (const OperatorTag tag : tags) { insert(tag); }
  }

  [[nodiscard]] static constexpr TagSet all() {
    TagSet set;
    set.bits_ = (1U << kOperatorTags) - 1U;
    return set;
  }

  constexpr void insert(OperatorTag tag) { bits_ |= bit(tag); }

  [[nodiscard]] constexpr bool intersects(TagSet other) const { return (bits_ & other.bits_) != 0; }
  [[nodiscard]] constexpr bool contains(OperatorTag tag) const { return (bits_ & bit(tag)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }

  friend constexpr bool operator==(TagSet, TagSet) = default;

 private:
  [[nodiscard]] static constexpr std::uint32_t bit(OperatorTag tag) { return 1U << static_cast<std::uint32_t>(tag); }

  std::uint32_t bits_ = 0;
};

}  // namespace orrery::workload
