// What a measured run used where its row does not say: people who ran it took what fits, not what is fastest.
#pragma once

#include "orrery/estimate/request.hpp"

namespace orrery::validate {

// `plan` with recompute and micro-batch chosen unless the request gives them: the lowest recompute, and for it the
// largest micro-batch (up to 8, a divisor of a replica's batch), that fit in memory; full recompute and micro-batch 1
// if nothing fits. A batch of requests has one micro-batch per stage; a recommender the whole batch of a replica, or a
// half, a quarter, ... of it.
[[nodiscard]] parallel::Plan usual_choices(const estimate::Request& request, const workload::Model& model,
                                           const hardware::Cluster& cluster, const hardware::Stack& stack,
                                           const parallel::Plan& plan);

}  // namespace orrery::validate
