// How an output joins the residual stream.
#pragma once

#include <string_view>

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

// What happens to the output of attention or of the MLP before it joins the residual stream.
struct Join {
  std::string_view name;
  bool bias = false;      // of h elements, held whole by every tp rank
  bool drops = true;      // with the model's dropout
  bool adds = true;       // a second tensor is added
  int gradient_sums = 0;  // sums of gradients where the input of the half layer forked
  double tokens = 0;      // of this rank
  OperatorTag tag = OperatorTag::residual;
};

// out = (other +) dropout(x + bias), one kernel when fused, up to three apart.
// Backward of the dropout: dout and mask in, dx out; of the sum: nothing; of the bias: one more pass over dx when
// apart. A tensor that fed two places gets its two gradients summed: two in, one out.
[[nodiscard]] Operator join(const Join& join, const Sizes& z, bool fused);

}  // namespace orrery::workload
