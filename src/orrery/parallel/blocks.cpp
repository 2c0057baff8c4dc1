#include "orrery/parallel/blocks.hpp"

#include <vector>

namespace orrery::parallel {

using network::Collective;
using workload::Boundary;
using workload::Operator;

namespace {

Item kernel_item(std::string_view name, const hardware::Kernel& kernel, Purpose purpose) {
  Item item;
  item.name = name;
  item.purpose = purpose;
  item.kernel = kernel;
  return item;
}

Item collective_item(std::string_view name, CollectiveCall call, Purpose purpose) {
  Item item;
  item.name = name;
  item.purpose = purpose;
  item.is_collective = true;
  item.call = call;
  return item;
}

// What a boundary costs in one direction. `enter` needs a whole tensor: with sequence parallelism it is gathered,
// without it is whole already. `leave` holds partial sums: they are added up, and with sequence parallelism scattered.
// Backward is the mirror image: the gradient at `enter` is a partial sum, the one at `leave` is needed whole.
enum class Direction : std::uint8_t { forward, backward };

void append_boundary(std::vector<Item>& items, const Operator& op, Direction direction, const Plan& plan,
                     Purpose purpose) {
  if (plan.tp == 1 || op.boundary == Boundary::none) { return; }
  if (op.boundary == Boundary::reduce) {
    if (direction == Direction::forward) {
      items.push_back(collective_item(op.name, {Collective::all_reduce, GroupKind::tp, op.boundary_bytes}, purpose));
    }
    return;
  }
  const bool sums = (op.boundary == Boundary::leave) == (direction == Direction::forward);
  if (!sums && !plan.sequence_parallel) { return; }
  Collective collective = Collective::all_gather;
  if (sums) { collective = plan.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce; }
  items.push_back(collective_item(op.name, {collective, GroupKind::tp, op.boundary_bytes}, purpose));
}

void append_kernel(std::vector<Item>& items, std::string_view name, const hardware::Kernel& kernel, Purpose purpose) {
  if (kernel.kind != hardware::KernelKind::none) { items.push_back(kernel_item(name, kernel, purpose)); }
}

void append_forward(std::vector<Item>& items, std::span<const Operator> operators, const Plan& plan, Purpose purpose) {
  for (const auto& op : operators) {
    append_boundary(items, op, Direction::forward, plan, purpose);
    append_kernel(items, op.name, op.forward, purpose);
  }
}

// With sequence parallelism the input of an `enter` is kept scattered, and the weight-gradient product needs it whole.
void append_gather_again(std::vector<Item>& items, const Operator& enter) {
  items.push_back(
      collective_item(enter.name, {Collective::all_gather, GroupKind::tp, enter.boundary_bytes}, Purpose::backward));
}

// Backward of a weight product right behind an `enter`: its input gradient is a partial sum whose reduction can run
// beside the weight-gradient product, and the input is gathered again beside the input-gradient product.
void append_entry_product(std::vector<Item>& items, const Operator& enter, const Operator& op, const Plan& plan) {
  std::int32_t gathered = -1;
  if (plan.sequence_parallel) {
    gathered = static_cast<std::int32_t>(items.size());
    append_gather_again(items, enter);
    items.back().asynchronous = true;
  }
  append_kernel(items, op.name, op.backward_input, Purpose::backward);
  append_boundary(items, enter, Direction::backward, plan, Purpose::backward);
  items.back().asynchronous = true;
  const auto reduced = static_cast<std::int32_t>(items.size()) - 1;
  items.push_back(kernel_item(op.name, op.backward_weight, Purpose::backward));
  items.back().waits_for = gathered;
  // Nothing may use the input gradient before it is summed: the next item waits, or the block's end does.
  items.push_back(kernel_item(enter.name, {}, Purpose::backward));
  items.back().waits_for = reduced;
}

// Runs the dropped attention core again, in forward order, before its own backward begins.
void append_core_again(std::vector<Item>& items, std::span<const Operator> operators) {
  for (const auto& op : operators) {
    if (op.attention_core) { append_kernel(items, op.name, op.forward, Purpose::recompute); }
  }
}

}  // namespace

Block forward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan) {
  Block block{name, {}};
  append_forward(block.items, operators, plan, Purpose::forward);
  return block;
}

Block backward_block(std::string_view name, std::span<const Operator> operators, const Plan& plan,
                     const hardware::Stack& stack, Recompute recompute, Gradients /*gradients*/) {
  Block block{name, {}};
  auto& items = block.items;
  if (recompute == Recompute::full) { append_forward(items, operators, plan, Purpose::recompute); }
  bool core_dropped = recompute == Recompute::selective;
  for (std::size_t j = operators.size(); j-- > 0;) {
    const auto& op = operators[j];
    if (op.attention_core && core_dropped) {
      append_core_again(items, operators);
      core_dropped = false;
    }
    const bool enters = j > 0 && operators[j - 1].boundary == Boundary::enter && plan.tp > 1;
    const bool product = op.backward_weight.kind != hardware::KernelKind::none;
    if (enters && product && stack.overlap_tp_backward) {
      append_entry_product(items, operators[j - 1], op, plan);
      --j;
      continue;
    }
    if (enters && product && plan.sequence_parallel) { append_gather_again(items, operators[j - 1]); }
    append_boundary(items, op, Direction::backward, plan, Purpose::backward);
    append_kernel(items, op.name, op.backward_input, Purpose::backward);
    append_kernel(items, op.name, op.backward_weight, Purpose::backward);
  }
  return block;
}

Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes) {
  return {name, {collective_item(name, {collective, group, bytes}, Purpose::optimizer)}};
}

}  // namespace orrery::parallel
