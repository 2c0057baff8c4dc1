#include "orrery/validate/rows.hpp"

#include <array>

namespace orrery::validate {

namespace {

using Training = TrainingRow;
using Inference = InferenceRow;
using Of = KernelRow;
using Call = CollectiveRow;

const std::array kTraining = {
    Field<Training>{"family", &Training::family, true},
    Field<Training>{"model", &Training::model, true},
    Field<Training>{"layers", &Training::layers, true},
    Field<Training>{"hidden", &Training::hidden, true},
    Field<Training>{"heads", &Training::heads, true},
    Field<Training>{"kv_heads", &Training::kv_heads},
    Field<Training>{"ffn", &Training::ffn},
    Field<Training>{"vocab", &Training::vocab},
    Field<Training>{"experts", &Training::experts},
    Field<Training>{"topk", &Training::topk},
    Field<Training>{"moe_ffn", &Training::moe_ffn},
    Field<Training>{"seq", &Training::seq, true},
    Field<Training>{"precision", &Training::precision},
    Field<Training>{"gpus", &Training::gpus, true},
    Field<Training>{"gpu_type", &Training::gpu_type, true},
    Field<Training>{"gpus_per_node", &Training::gpus_per_node},
    Field<Training>{"intra_bw_GBps", &Training::intra_bw_GBps},
    Field<Training>{"nic_bw_GBps_per_gpu", &Training::nic_bw_GBps_per_gpu},
    Field<Training>{"tp", &Training::tp},
    Field<Training>{"pp", &Training::pp},
    Field<Training>{"dp", &Training::dp},
    Field<Training>{"ep", &Training::ep},
    Field<Training>{"cp", &Training::cp},
    Field<Training>{"sp", &Training::sp},
    Field<Training>{"micro_batch", &Training::micro_batch},
    Field<Training>{"global_batch", &Training::global_batch, true},
    Field<Training>{"vpp", &Training::vpp},
    Field<Training>{"recompute", &Training::recompute},
    Field<Training>{"lora", &Training::lora, false, 0.0},
    Field<Training>{"zero", &Training::zero, false, 0.0},
    Field<Training>{"metric", &Training::metric},
};

const std::array kInference = {
    Field<Inference>{"family", &Inference::family, true},
    Field<Inference>{"model", &Inference::model, true},
    Field<Inference>{"layers", &Inference::layers},
    Field<Inference>{"hidden", &Inference::hidden},
    Field<Inference>{"heads", &Inference::heads},
    Field<Inference>{"kv_heads", &Inference::kv_heads},
    Field<Inference>{"ffn", &Inference::ffn},
    Field<Inference>{"vocab", &Inference::vocab},
    Field<Inference>{"experts", &Inference::experts},
    Field<Inference>{"topk", &Inference::topk},
    Field<Inference>{"moe_ffn", &Inference::moe_ffn},
    Field<Inference>{"precision", &Inference::precision},
    Field<Inference>{"gpus", &Inference::gpus, true},
    Field<Inference>{"gpu_type", &Inference::gpu_type, true},
    Field<Inference>{"gpus_per_node", &Inference::gpus_per_node},
    Field<Inference>{"intra_bw_GBps", &Inference::intra_bw_GBps},
    Field<Inference>{"nic_bw_GBps_per_gpu", &Inference::nic_bw_GBps_per_gpu},
    Field<Inference>{"tp", &Inference::tp},
    Field<Inference>{"pp", &Inference::pp},
    Field<Inference>{"ep", &Inference::ep},
    Field<Inference>{"batch_or_concurrency", &Inference::batch, true},
    Field<Inference>{"isl", &Inference::isl, true},
    Field<Inference>{"osl", &Inference::osl, true},
    Field<Inference>{"mode", &Inference::mode, true},
    Field<Inference>{"engine", &Inference::engine},
};

const std::array kKernel = {
    Field<Of>{"family", &Of::family, true},
    Field<Of>{"op", &Of::op, true},
    Field<Of>{"gpu_type", &Of::gpu_type, true},
    Field<Of>{"dtype", &Of::dtype},
    Field<Of>{"m", &Of::m, true},
    Field<Of>{"n", &Of::n, true},
    Field<Of>{"k", &Of::k, true},
    Field<Of>{"groups", &Of::groups},
};

const std::array kCollective = {
    Field<Call>{"family", &Call::family, true},
    Field<Call>{"collective", &Call::collective, true},
    Field<Call>{"algo", &Call::algo},
    Field<Call>{"size_bytes", &Call::size_bytes, true},
    Field<Call>{"gpus", &Call::gpus, true},
    Field<Call>{"nodes", &Call::nodes},
    Field<Call>{"gpus_per_node", &Call::gpus_per_node},
    Field<Call>{"gpu_type", &Call::gpu_type, true},
    Field<Call>{"intra_bw_GBps", &Call::intra_bw_GBps},
    Field<Call>{"nic_bw_GBps_per_gpu", &Call::nic_bw_GBps_per_gpu},
    Field<Call>{"network", &Call::network},
    Field<Call>{"nccl_version", &Call::nccl_version},
};

const std::array kCommand = {
    Field<CommandRow>{"args", &CommandRow::args, true},
    Field<CommandRow>{"source", &CommandRow::family},
};

}  // namespace

std::span<const Field<TrainingRow>> training_fields() { return kTraining; }
std::span<const Field<InferenceRow>> inference_fields() { return kInference; }
std::span<const Field<KernelRow>> kernel_fields() { return kKernel; }
std::span<const Field<CollectiveRow>> collective_fields() { return kCollective; }
std::span<const Field<CommandRow>> command_fields() { return kCommand; }

}  // namespace orrery::validate
