#include "orrery/validate/kind.hpp"

#include <array>

namespace orrery::validate {

namespace {

// A column that only tables of one kind have.
struct Mark {
  std::string_view column;
  TableKind kind;
};
constexpr std::array kMarks = {
    Mark{"args", TableKind::commands},          Mark{"load_kind", TableKind::serving},
    Mark{"collective", TableKind::collectives}, Mark{"op", TableKind::kernels},
    Mark{"isl", TableKind::inference},          Mark{"osl", TableKind::inference},
    Mark{"experts", TableKind::dlrm_moe},       Mark{"topk", TableKind::dlrm_moe},
    Mark{"gpu_hours", TableKind::campaigns},    Mark{"inner_steps", TableKind::wan},
};

}  // namespace

std::string_view name_of(TableKind kind) {
  switch (kind) {
    case TableKind::training: return "training";
    case TableKind::dlrm_moe: return "dlrm_moe";
    case TableKind::inference: return "inference";
    case TableKind::kernels: return "kernels";
    case TableKind::collectives: return "collectives";
    case TableKind::campaigns: return "campaigns";
    case TableKind::wan: return "wan";
    case TableKind::serving: return "serving";
    case TableKind::commands: return "commands";
  }
  throw_internal_error("known kind", __FILE__, __LINE__);
}

TableKind kind_of(const Csv& csv) {
  for (const auto& mark : kMarks) {
    if (csv.column(mark.column)) { return mark.kind; }
  }
  return TableKind::training;
}

}  // namespace orrery::validate
