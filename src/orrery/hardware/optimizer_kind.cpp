#include "orrery/hardware/optimizer_kind.hpp"

#include "orrery/core/error.hpp"
#include "orrery/hardware/records.hpp"

namespace orrery::hardware {

namespace {

// Two moments of 8 bits and their scales: "block-wise quantization" with blocks of 2,048 (arXiv:2110.02861, section 2).
constexpr Bytes kTwoQuantizedMoments{2.0 * (1.0 + 4.0 / 2048.0)};

}  // namespace

std::string_view name_of(Fp8Recipe recipe) { return config::enum_name(recipe); }

std::string_view name_of(OptimizerKind kind) { return config::enum_name(kind); }

Bytes state_per_weight(OptimizerKind kind, Bytes moments) {
  switch (kind) {
    case OptimizerKind::adam:
    case OptimizerKind::muon: return moments;
    case OptimizerKind::adam8bit: return kTwoQuantizedMoments;
    case OptimizerKind::sgd: return moments / 2.0;
  }
  throw_internal_error("known optimizer", __FILE__, __LINE__);
}

Bytes state_per_matrix_weight(OptimizerKind kind, Bytes moments) {
  return kind == OptimizerKind::muon ? moments / 2.0 : state_per_weight(kind, moments);
}

}  // namespace orrery::hardware
