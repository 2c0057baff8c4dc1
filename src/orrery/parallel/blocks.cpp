#include "orrery/parallel/blocks.hpp"

#include <algorithm>
#include <vector>

#include "orrery/parallel/blocks_writer.hpp"

namespace orrery::parallel {

using workload::Boundary;
using workload::Operator;

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Writes the backward pass of operators: in reverse order, each boundary with the collective of its gradient.
class BackwardWriter {
 public:
  BackwardWriter(std::vector<Item>& items, Operators operators, const Plan& plan, const hardware::Stack& stack)
      : operators_(operators), plan_(plan), stack_(stack), write_(items, plan) {}

  // Computes input gradients, and with `weights` weight gradients.
  void gradients(bool weights, workload::TagSet replayed) {
    weights_ = weights;
    replayed_ = replayed;
    replayed_from_ = operators_.size();
    for (std::size_t j = operators_.size(); j > 0;) { j = backward_before(j); }
  }

  // Computes weight gradients only. Inputs that were kept scattered are gathered again, overlapped with the previous
  // GEMM if the stack does so.
  void weight_gradients() {
    std::size_t j = weight_gradient_before(operators_.size());
    OptionalItemId arriving = gather_for(j);
    while (j != kNone) {
      const Operator& op = operators_[j];
      const std::size_t next = weight_gradient_before(j);
      const OptionalItemId arrived = arriving;
      if (stack_.overlap.tp_backward) { arriving = gather_for(next); }
      write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient, arrived);
      if (!stack_.overlap.tp_backward) { arriving = gather_for(next); }
      j = next;
    }
  }

 private:
  // Writes the operators before position `j` that belong together; returns the position to continue from.
  std::size_t backward_before(std::size_t j) {
    const Operator& op = operators_[--j];
    if (is_core(op)) { return core_before(j + 1); }
    replay_for(j);
    if (op.boundary == Boundary::leave && write_.overlaps_gemms() && follows_gemm(j)) { return leave_and_gemm(j); }
    const std::size_t enter = enter_of(j);
    if (enter != kNone && enter + 1 == j) {
      replay_for(enter);
      entry_gemm(operators_[enter], op);
      return enter;
    }
    if (enter != kNone && weights_) {
      shared_entry_gemm(operators_[enter], op);
      return j;
    }
    write_.cross(op, Direction::backward, Purpose::backward);
    const bool updates_rows = op.tag == workload::OperatorTag::tables;
    write_.kernel(op.name, op.backward_input, updates_rows ? Purpose::weight_gradient : Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient); }
    return j;
  }

  // The attention core that ends before position `end`, with its collectives.
  std::size_t core_before(std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && is_core(operators_[begin - 1])) { --begin; }
    const Operators core = operators_.subspan(begin, end - begin);
    for (std::size_t i = end; i-- > begin;) { replay_for(i); }
    if (begin > 0 && replayed_.contains(operators_[begin - 1].tag)) { replay_down_to(begin - 1); }  // makes its inputs
    write_.core(core, Direction::backward, Purpose::backward);
    return begin;
  }

  // Replays what the backward pass of operator `i` reads and what was not kept: the operator's own results and its
  // input.
  void replay_for(std::size_t i) {
    const Operator& op = operators_[i];
    if (replayed_.contains(op.tag)) { replay_down_to(i); }
    if (op.saved_input == Bytes(0) || !replayed_.contains(op.input_from)) { return; }
    std::size_t maker = i;
    while (maker > 0 && operators_[maker - 1].tag != op.input_from) { --maker; }
    if (maker > 0) { replay_down_to(maker - 1); }
  }

  // Replays operators from `i` on that have not been replayed, run by run, the last run first; and the run of `i` from
  // its start.
  void replay_down_to(std::size_t i) {
    const auto is_replayed = [&](std::size_t k) { return replayed_.contains(operators_[k].tag); };
    while (replayed_from_ > i) {
      std::size_t end = replayed_from_;
      while (end > i + 1 && !is_replayed(end - 1)) { --end; }
      std::size_t begin = end - 1;
      while (begin > 0 && is_replayed(begin - 1)) { --begin; }
      write_.kernel(operators_[begin].name, operators_[begin].alone, Purpose::recompute);
      write_.forward(operators_.subspan(begin, end - begin), Purpose::recompute);
      replayed_from_ = begin;
    }
  }

  // Whether the operator before leave `j` is a GEMM that does not directly follow an enter.
  [[nodiscard]] bool follows_gemm(std::size_t j) const {
    return j > 0 && is_gemm(operators_[j - 1].backward_input) && enter_of(j - 1) == kNone;
  }

  // The GEMM before leave `j` needs the whole gradient of the leave: the gather is overlapped with the GEMM.
  std::size_t leave_and_gemm(std::size_t j) {
    const Operator& leave = operators_[j];
    const Operator& op = operators_[j - 1];
    replay_for(j - 1);
    write_.gather_and_gemm(leave.name, *crossing(leave, Direction::backward, plan_), op.name, op.backward_input,
                           Cut::rows, Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient); }
    return j - 1;
  }

  // The GEMM directly after an `enter`. Its input gradient is a partial sum; with sequence parallelism its input was
  // kept scattered, and its weight gradient needs the whole input.
  void entry_gemm(const Operator& enter, const Operator& op) {
    const auto sum = crossing(enter, Direction::backward, plan_);
    if (weights_ && stack_.overlap.tp_backward) {
      overlapped_entry_gemm(enter, op, *sum);
      return;
    }
    const bool again = weights_ && plan_.sequence_parallel;
    if (write_.overlaps_gemms()) {
      write_.gemm_and_scatter(op.name, op.backward_input, enter.name, *sum, Purpose::backward);
      if (again) {
        write_.gather_and_gemm(enter.name, gather_again(enter), op.name, op.backward_weight, Cut::depth,
                               Purpose::weight_gradient);
      }
      return;
    }
    if (again) { write_.collective(enter.name, gather_again(enter), Purpose::weight_gradient); }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient); }
    write_.collective(enter.name, *sum, Purpose::backward);
  }

  // The gather of the input is overlapped with the input-gradient GEMM, and the reduction of its result with the
  // weight-gradient GEMM.
  void overlapped_entry_gemm(const Operator& enter, const Operator& op, const CollectiveCall& sum) {
    OptionalItemId gathered;
    if (plan_.sequence_parallel) {
      gathered = write_.collective(enter.name, gather_again(enter), Purpose::weight_gradient, true);
    }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    const ItemId summed = write_.collective(enter.name, sum, Purpose::backward, true);
    write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient, gathered);
    // The next operator reads the reduced input gradient.
    write_.wait(enter.name, summed, Purpose::backward);
  }

  // A GEMM that reads the tensor of an `enter`, with frozen GEMMs between the two (an adapter's).
  void shared_entry_gemm(const Operator& enter, const Operator& op) {
    OptionalItemId gathered;
    if (plan_.sequence_parallel) {
      gathered =
          write_.collective(enter.name, gather_again(enter), Purpose::weight_gradient, stack_.overlap.tp_backward);
    }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    write_.kernel(op.name, op.backward_weight, Purpose::weight_gradient,
                  stack_.overlap.tp_backward ? gathered : OptionalItemId());
  }

  static CollectiveCall gather_again(const Operator& enter) {
    return {Collective::all_gather, GroupKind::tp, enter.boundary_bytes};
  }

  // The enter whose tensor is the input of weight-gradient GEMM `j`: directly before it, or with only frozen GEMMs
  // between.
  [[nodiscard]] std::size_t enter_of(std::size_t j) const {
    if (plan_.tp == 1 || !is_gemm(operators_[j].backward_weight)) { return kNone; }
    std::size_t i = j;
    while (i > 0 && is_gemm(operators_[i - 1].forward) && !is_gemm(operators_[i - 1].backward_weight)) { --i; }
    return i > 0 && operators_[i - 1].boundary == Boundary::enter ? i - 1 : kNone;
  }

  // The last operator before `end` that has a weight gradient.
  [[nodiscard]] std::size_t weight_gradient_before(std::size_t end) const {
    while (end-- > 0) {
      if (operators_[end].backward_weight.kind != hardware::KernelKind::none) { return end; }
    }
    return kNone;
  }

  // Gathers the input of GEMM `j` again if it was kept scattered. Returns the item to wait for.
  OptionalItemId gather_for(std::size_t j) {
    const std::size_t enter = j == kNone || !plan_.sequence_parallel ? kNone : enter_of(j);
    if (enter == kNone) { return {}; }
    const bool overlaps = stack_.overlap.tp_backward;
    const ItemId item =
        write_.collective(operators_[enter].name, gather_again(operators_[enter]), Purpose::weight_gradient, overlaps);
    return overlaps ? OptionalItemId(item) : OptionalItemId();
  }

  Operators operators_;
  const Plan& plan_;
  const hardware::Stack& stack_;
  ItemWriter write_;
  bool weights_ = true;
  workload::TagSet replayed_;
  std::size_t replayed_from_ = 0;  // operators from here on have been replayed if necessary
};

}  // namespace

Block forward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan) {
  Block block{name, {}};
  block.items.reserve(operators.size() + 4);
  ItemWriter(block.items, plan).forward(operators, Purpose::forward);
  return block;
}

Block backward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan,
                     const hardware::Stack& stack, workload::TagSet replayed, Gradients gradients) {
  Block block{name, {}};
  block.items.reserve((replayed.empty() ? 2 : 3) * operators.size() + 4);
  BackwardWriter backward(block.items, operators, plan, stack);
  if (gradients == Gradients::weight) {
    backward.weight_gradients();
    return block;
  }
  backward.gradients(gradients == Gradients::all, replayed);
  return block;
}

namespace {

// One call of the framework's backward makes both gradients of an operator.
bool is_same_call(const Item& a, const Item& b) {
  const auto call_of = [](Purpose purpose) {
    return purpose == Purpose::weight_gradient ? Purpose::backward : purpose;
  };
  return a.name == b.name && call_of(a.purpose) == call_of(b.purpose);
}

// Host time of the items of a block if the framework's time per operator and that of a kernel differ. Items of one
// operator have one name: the pieces of an overlapped product, and those of its collective.
Seconds operators_time(const Block& block, const hardware::HostPolicy& host) {
  std::vector<const Item*> operators;
  operators.reserve(block.items.size());
  double kernels = 0.0;
  for (const auto& item : block.items) {
    const KernelLaunch* run = item.kernel();
    if (item.collective() == nullptr && (run == nullptr || run->kernel.kind == hardware::KernelKind::none)) {
      continue;
    }
    kernels += run == nullptr ? 1.0 : static_cast<double>(run->kernel.launches + run->kernel.extra_kernels);
    const bool known =
        std::any_of(operators.begin(), operators.end(), [&](const Item* other) { return is_same_call(*other, item); });
    if (!known) { operators.push_back(&item); }
  }
  const auto count = static_cast<double>(operators.size());
  return count * host.launch_time + (kernels - count) * host.kernel_launch_time;
}

}  // namespace

Seconds host_time(const Block& block, const hardware::Stack& stack) {
  if (stack.host.kernel_launch_time > Seconds(0)) { return operators_time(block, stack.host); }
  double launches = 0.0;
  for (const auto& item : block.items) {
    const KernelLaunch* run = item.kernel();
    if (item.collective() != nullptr) { launches += 1.0; }
    if (run == nullptr || run->kernel.kind == hardware::KernelKind::none) { continue; }
    launches += run->kernel.launches;
  }
  return launches * stack.host.launch_time;
}

Item stream_item(std::string_view name, Purpose purpose, Bytes bytes, const hardware::HeldBytes& held) {
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.bytes = bytes;
  kernel.held = held;
  return {name, purpose, KernelLaunch{kernel}};
}

Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes) {
  return {name, {{name, Purpose::optimizer, CollectiveLaunch{{collective, group, bytes}}}}};
}

}  // namespace orrery::parallel
