#include "orrery/validate/kind.hpp"

#include <array>

namespace orrery::validate {

namespace {

// A column that only tables of one kind have.
struct Mark {
  std::string_view column;
  Kind kind;
};
constexpr std::array kMarks = {
    Mark{"collective", Kind::collectives}, Mark{"op", Kind::kernels},       Mark{"isl", Kind::inference},
    Mark{"osl", Kind::inference},          Mark{"experts", Kind::dlrm_moe}, Mark{"topk", Kind::dlrm_moe},
};

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::training: return "training";
    case Kind::dlrm_moe: return "dlrm_moe";
    case Kind::inference: return "inference";
    case Kind::kernels: return "kernels";
    case Kind::collectives: return "collectives";
  }
  throw_internal_error("known kind", __FILE__, __LINE__);
}

Kind kind_of(const Csv& csv) {
  for (const auto& mark : kMarks) {
    if (csv.column(mark.column)) { return mark.kind; }
  }
  return Kind::training;
}

}  // namespace orrery::validate
