// A software-stack profile: what a training framework does that a model and a plan do not say. Few parameters, each
// with a physical meaning; the same for every model, size and device count.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

enum class AttentionKernel : std::uint8_t {
  plain,  // scores, softmax and dropout each go through memory
  flash,  // one fused kernel that keeps scores on chip
};

enum class RecomputeRule : std::uint8_t { least_that_fits, always_full };

struct Stack {
  std::string name;
  std::string description;

  AttentionKernel attention = AttentionKernel::flash;
  bool causal_skip = true;       // the attention kernel skips the masked half
  bool narrow_cache = false;     // keys and values are kept in the format of matrix inputs where that is narrower (fp8)
  double attention_rate = 1.0;   // of the accelerator's fused attention, what this stack's kernel reaches
  bool native_attention = true;  // ... which uses what the accelerator's matrix units newly have
  double stream_traffic = 1.0;   // what element-wise kernels move over what they must: copies, casts, sums apart
  bool fused_elementwise = true;    // bias + activation, and bias + dropout + residual, are one kernel each
  bool fused_loss = true;           // vocabulary loss works on logits without fp32 copies in memory
  bool narrow_activations = false;  // a gated activation's input is kept for backward in the format of matrix inputs
                                    // where that is narrower (one byte at least)

  bool fused_gradient_accumulation = true;  // weight-gradient products add into the gradient buffer themselves
  bool overlap_tp_backward = true;  // the reduction of a layer's input gradient runs beside the weight-gradient product

  Bytes gradient_element{4.0};     // gradient accumulation buffer
  double bucket_parameters = 0.0;  // gradients are reduced in groups of layers of so many weights; 0: layer by layer
  Bytes gradient_reduce_element{4.0};  // element that the data-parallel reduction moves
  bool fused_experts = false;          // ... whose activation and the casts behind it are part of the products
  bool overlap_dispatch = false;       // tokens travel to experts and back beside another micro-batch's kernels, the
                                       // forward pass of one beside the backward pass of another
  // Tokens on their way to experts.
  bool dispatch_per_node = false;  // one copy to every node that a token goes to, handed on there (DeepEP); else one to
                                   // every expert
  Bytes dispatch_element{0.0};  // element of what goes to experts (and of gradients that do); 0: as activations. What
                                // comes back is as activations
  Bytes master_element{4.0};    // master copy of a weight; 0 when weights are their own master
  Bytes moment_element{8.0};    // optimizer moments per weight, all of them

  // Embedding tables of recommenders, whose optimizer is sparse: it touches the rows that a batch has looked up.
  Bytes table_moment_element{4.0};    // optimizer state per weight (Adagrad: one fp32)
  Bytes table_moment_row{0.0};        // and per row besides (row-wise Adagrad: one fp32, and none per weight)
  Bytes table_exchange_element{0.0};  // of looked-up vectors and their gradients on their way; 0: as activations

  bool gradient_norm = true;  // the norm of all gradients is taken before the optimizer, as clipping needs it

  bool overlap_gradient_reduce = true;   // default of --dp-overlap
  bool overlap_parameter_gather = true;  // sharded-optimizer weights gathered under the next forward
  double interference = 0.0;             // part of the rate of kernels that is lost beside gathers and reductions
  bool scatter_transfers = false;  // without sequence parallelism: each rank sends its part of 1 / tp of what all have
                                   // to the next stage, whose ranks gather the parts
  bool single_port = false;        // collectives that meet several devices of each of more than two nodes leave a node
                                   // through one port: its collective library's rings (docs/models/collectives.md)
  Seconds launch_time;             // of the host, to issue one kernel or collective of a forward or backward pass
  Seconds expert_launch_time;      // and each further expert's of a product that it issues expert by expert, on
                                   // streams beside each other, as it does their biases; 0: one kernel for all
  Seconds host_overhead;           // per step: data loading, logging, launching what nothing hides
  double memory_reserve = 0.06;    // part of device memory that tensors cannot use
  Sources sources;
};

}  // namespace orrery::hardware
