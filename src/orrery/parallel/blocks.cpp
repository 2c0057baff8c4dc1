#include "orrery/parallel/blocks.hpp"

#include <vector>

#include "orrery/parallel/blocks_writer.hpp"

namespace orrery::parallel {

using workload::Boundary;
using workload::Operator;

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Writes the backward pass of operators: in reverse, each boundary as its mirror image.
class BackwardWriter {
 public:
  BackwardWriter(std::vector<Item>& items, Operators operators, const Plan& plan, const hardware::Stack& stack)
      : operators_(operators), plan_(plan), stack_(stack), write_(items, plan) {}

  // Input gradients, with the weight gradients where `weights`; `core_again` runs attention cores forward before.
  void gradients(bool weights, bool core_again) {
    weights_ = weights;
    core_again_ = core_again;
    for (std::size_t j = operators_.size(); j > 0;) { j = backward_before(j); }
  }

  // Weight gradients alone. Inputs that were kept scattered are gathered again, beside the product before where the
  // stack overlaps.
  void weight_gradients() {
    std::size_t j = product_before(operators_.size());
    std::int32_t arriving = gather_for(j);
    while (j != kNone) {
      const Operator& op = operators_[j];
      const std::size_t next = product_before(j);
      const std::int32_t arrived = arriving;
      if (stack_.overlap_tp_backward) { arriving = gather_for(next); }
      write_.kernel(op.name, op.backward_weight, Purpose::backward, arrived);
      if (!stack_.overlap_tp_backward) { arriving = gather_for(next); }
      j = next;
    }
  }

 private:
  // Writes what comes before operator `j` in the list, and so behind it in time; where to go on.
  std::size_t backward_before(std::size_t j) {
    const Operator& op = operators_[--j];
    if (op.attention_core) { return core_before(j + 1); }
    if (op.boundary == Boundary::leave && write_.overlaps_products() && leads_product(j)) {
      return leave_and_product(j);
    }
    const std::size_t enter = enter_of(j);
    if (enter != kNone && enter + 1 == j) {
      entry_product(operators_[enter], op);
      return enter;
    }
    if (enter != kNone && weights_) {
      shared_entry_product(operators_[enter], op);
      return j;
    }
    write_.cross(op, Direction::backward, Purpose::backward);
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::backward); }
    return j;
  }

  // The attention core that ends before operator `end`, with its exchange.
  std::size_t core_before(std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && operators_[begin - 1].attention_core) { --begin; }
    const Operators core = operators_.subspan(begin, end - begin);
    if (core_again_) { write_.core(core, Direction::forward, Purpose::recompute); }
    write_.core(core, Direction::backward, Purpose::backward);
    return begin;
  }

  // Whether a product stands right before leave `j`, and not right behind an enter as well.
  [[nodiscard]] bool leads_product(std::size_t j) const {
    return j > 0 && is_product(operators_[j - 1].backward_input) && enter_of(j - 1) == kNone;
  }

  // The gradient behind leave `j` is needed whole by the product before it: gathered beside it.
  std::size_t leave_and_product(std::size_t j) {
    const Operator& leave = operators_[j];
    const Operator& op = operators_[j - 1];
    write_.gather_product(leave.name, *crossing(leave, Direction::backward, plan_), op.name, op.backward_input,
                          Cut::rows, Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::backward); }
    return j - 1;
  }

  // The product right behind an `enter`. Its input gradient is a partial sum; with sequence parallelism its input was
  // kept scattered and its weight gradient needs that whole.
  void entry_product(const Operator& enter, const Operator& op) {
    const auto sum = crossing(enter, Direction::backward, plan_);
    if (weights_ && stack_.overlap_tp_backward) {
      overlapped_entry_product(enter, op, *sum);
      return;
    }
    const bool again = weights_ && plan_.sequence_parallel;
    if (write_.overlaps_products()) {
      write_.product_scatter(op.name, op.backward_input, enter.name, *sum, Purpose::backward);
      if (again) {
        write_.gather_product(enter.name, gather_again(enter), op.name, op.backward_weight, Cut::depth,
                              Purpose::backward);
      }
      return;
    }
    if (again) { write_.collective(enter.name, gather_again(enter), Purpose::backward); }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    if (weights_) { write_.kernel(op.name, op.backward_weight, Purpose::backward); }
    write_.collective(enter.name, *sum, Purpose::backward);
  }

  // The input is gathered again beside the input-gradient product, whose result is summed beside the weight-gradient
  // product.
  void overlapped_entry_product(const Operator& enter, const Operator& op, const CollectiveCall& sum) {
    std::int32_t gathered = -1;
    if (plan_.sequence_parallel) {
      gathered = write_.collective(enter.name, gather_again(enter), Purpose::backward, true);
    }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    const std::int32_t summed = write_.collective(enter.name, sum, Purpose::backward, true);
    write_.kernel(op.name, op.backward_weight, Purpose::backward, gathered);
    // Nothing may use the input gradient before it is summed.
    write_.wait(enter.name, summed, Purpose::backward);
  }

  // A product that shares the tensor of an `enter` with frozen ones between the two (an adapter's).
  void shared_entry_product(const Operator& enter, const Operator& op) {
    std::int32_t gathered = -1;
    if (plan_.sequence_parallel) {
      gathered = write_.collective(enter.name, gather_again(enter), Purpose::backward, stack_.overlap_tp_backward);
    }
    write_.kernel(op.name, op.backward_input, Purpose::backward);
    write_.kernel(op.name, op.backward_weight, Purpose::backward, stack_.overlap_tp_backward ? gathered : -1);
  }

  static CollectiveCall gather_again(const Operator& enter) {
    return {Collective::all_gather, GroupKind::tp, enter.boundary_bytes};
  }

  // The enter whose tensor is the input of weight-gradient product `j`: right before it, or with nothing but frozen
  // products between.
  [[nodiscard]] std::size_t enter_of(std::size_t j) const {
    if (plan_.tp == 1 || !is_product(operators_[j].backward_weight)) { return kNone; }
    std::size_t i = j;
    while (i > 0 && is_product(operators_[i - 1].forward) && !is_product(operators_[i - 1].backward_weight)) { --i; }
    return i > 0 && operators_[i - 1].boundary == Boundary::enter ? i - 1 : kNone;
  }

  // The last operator before `end` that makes a weight gradient.
  [[nodiscard]] std::size_t product_before(std::size_t end) const {
    while (end-- > 0) {
      if (operators_[end].backward_weight.kind != hardware::KernelKind::none) { return end; }
    }
    return kNone;
  }

  // Gathers the input of product `j` again, if need be. The item that has to be waited for, or -1.
  std::int32_t gather_for(std::size_t j) {
    const std::size_t enter = j == kNone || !plan_.sequence_parallel ? kNone : enter_of(j);
    if (enter == kNone) { return -1; }
    const bool overlaps = stack_.overlap_tp_backward;
    const std::int32_t item =
        write_.collective(operators_[enter].name, gather_again(operators_[enter]), Purpose::backward, overlaps);
    return overlaps ? item : -1;
  }

  Operators operators_;
  const Plan& plan_;
  const hardware::Stack& stack_;
  ItemWriter write_;
  bool weights_ = true, core_again_ = false;
};

}  // namespace

Block forward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan) {
  Block block{name, {}};
  block.items.reserve(operators.size() + 4);
  ItemWriter(block.items, plan).forward(operators, Purpose::forward);
  return block;
}

Block backward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan,
                     const hardware::Stack& stack, Recompute recompute, Gradients gradients) {
  Block block{name, {}};
  block.items.reserve((recompute == Recompute::full ? 3 : 2) * operators.size() + 4);
  BackwardWriter backward(block.items, operators, plan, stack);
  if (gradients == Gradients::weight) {
    backward.weight_gradients();
    return block;
  }
  if (recompute == Recompute::full) { ItemWriter(block.items, plan).forward(operators, Purpose::recompute); }
  backward.gradients(gradients == Gradients::all, recompute == Recompute::selective);
  return block;
}

Seconds host_time(const Block& block, const hardware::Stack& stack) {
  double launches = 0.0, further = 0.0;
  for (const auto& item : block.items) {
    if (item.is_collective) {
      launches += 1.0;
    } else if (item.kernel.kind != hardware::KernelKind::none) {
      launches += item.kernel.launches;
      further += static_cast<double>(item.kernel.further);
    }
  }
  return launches * stack.launch_time + further * stack.expert_launch_time;
}

Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes) {
  Block block{name, {}};
  block.items.resize(1);
  Item& item = block.items.front();
  item.name = name;
  item.purpose = Purpose::optimizer;
  item.is_collective = true;
  item.call = {collective, group, bytes};
  return block;
}

}  // namespace orrery::parallel
