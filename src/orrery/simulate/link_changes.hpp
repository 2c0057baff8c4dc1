// Links that slow down, fail or come back while a job runs (docs/format/link-changes.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"

namespace orrery::simulate {

struct FlowJob;

// From `time` on, each link from one node to another has `bandwidth`; 0: it carries nothing.
struct LinkChange {
  // On a topology the names of its nodes; otherwise a device ("d3") and a dimension ("nvlink"), in the direction of the
  // bytes.
  std::string from, to;
  Seconds time;
  BytesPerSecond bandwidth;
  Place place;  // for errors
};

// Lines "change FROM TO TIME BANDWIDTH" (one direction) and "cable A B TIME BANDWIDTH" (both). `file`: for errors.
[[nodiscard]] Result<std::vector<LinkChange>> read_link_changes(std::string_view text, const std::string& file);

// Of a job with every rank simulated. Fails for links that the cluster does not have, and for more than their
// bandwidth.
[[nodiscard]] Result<void> change_links(FlowJob& job, std::span<const LinkChange> changes);

}  // namespace orrery::simulate
