// Files of links and flows (`simulate --flows`). Lines of words; `#` begins a comment:
//
//   case NAME
//   topo WORDS... weighted=0|1
//   link ID NAME BANDWIDTH LATENCY                    bytes/s, s
//   flow ID START BYTES DEPENDENCIES ROUTE [FINISH]   s; lists of ids a,b,c or -; FINISH is ignored
//   change LINK TIME BANDWIDTH                        the id of a link, s, bytes/s (0: it fails)
//   note WORDS...
//
// Flows may depend on flows of later lines; links stand before the flows that use them. docs/format/flows.md.
#pragma once

#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/network/flow_run.hpp"

namespace orrery::network {

[[nodiscard]] Result<FlowList> read_flows(std::string_view text, const std::string& file);

}  // namespace orrery::network
