#include "orrery/validate/kind.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>

namespace orrery::validate {

namespace {

// A column that only tables of one kind have.
struct Mark {
  std::string_view column, kind;
  std::optional<Kind> built;
};
constexpr std::array kMarks = {
    Mark{"collective", "collectives", {}},       Mark{"op", "kernels", Kind::kernels},
    Mark{"isl", "inference", Kind::inference},   Mark{"osl", "inference", Kind::inference},
    Mark{"experts", "dlrm_moe", Kind::dlrm_moe}, Mark{"topk", "dlrm_moe", Kind::dlrm_moe},
};

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::training: return "training";
    case Kind::dlrm_moe: return "dlrm_moe";
    case Kind::inference: return "inference";
    case Kind::kernels: return "kernels";
  }
  throw_internal_error("known kind", __FILE__, __LINE__);
}

Result<Kind> kind_of(const Csv& csv) {
  for (const auto& mark : kMarks) {
    if (!csv.column(mark.column)) { continue; }
    if (mark.built) { return *mark.built; }
    return fail(
        {csv.file, 1, 0, {}},
        fmt::format("the column \"{}\" makes this a table of kind {}, which is not built yet; training, dlrm_moe, "
                    "inference and kernels tables are",
                    mark.column, mark.kind));
  }
  return Kind::training;
}

}  // namespace orrery::validate
