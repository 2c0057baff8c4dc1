#include "orrery/config/tree_builder.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

constexpr std::size_t kMaxDuplicates = 50;

std::string too_deep() { return fmt::format("is nested more than {} levels deep", kMaxDepth); }

std::size_t text_bytes(const Node& node) {
  return node.scalar.size() + node.place.path.size() + node.place.file.size();
}

}  // namespace

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

bool TreeBuilder::expects_key() const {
  return !stack_.empty() && stack_.back().node.kind == Kind::mapping && !stack_.back().has_key;
}

void TreeBuilder::charge(std::size_t nodes, std::size_t bytes, Spot spot) {
  nodes_ += nodes;
  bytes_ += bytes;
  if (nodes_ > kMaxNodes) { throw TreeStop(spot, fmt::format("holds more than {} values", kMaxNodes)); }
  if (bytes_ > kMaxTextBytes) {
    throw TreeStop(spot, fmt::format("holds more than {} MiB of text", kMaxTextBytes >> 20));
  }
}

void TreeBuilder::charge(const Node& node, Spot spot) {
  charge(1, text_bytes(node), spot);
  for (const Node& item : node.items) { charge(item, spot); }
  for (const Member& member : node.members) {
    charge(0, member.key.size(), spot);
    charge(member.value, spot);
  }
}

std::string TreeBuilder::next_path() const {
  if (stack_.empty()) { return {}; }
  const Frame& frame = stack_.back();
  if (frame.node.kind == Kind::mapping) { return frame.node.place.path + pointer_step(frame.key); }
  return fmt::format("{}/{}", frame.node.place.path, frame.node.items.size());
}

void TreeBuilder::key(std::string text, Spot spot) {
  charge(0, 2 * text.size(), spot);
  Frame& frame = stack_.back();
  frame.key = std::move(text);
  frame.key_spot = spot;
  frame.has_key = true;
}

void TreeBuilder::scalar(Kind kind, std::string text, bool quoted, Spot spot) {
  Node node;
  node.kind = kind;
  node.scalar = std::move(text);
  node.quoted = quoted;
  node.place = {file_, spot.line, spot.column, next_path()};
  charge(1, text_bytes(node), spot);
  attach(std::move(node));
}

void TreeBuilder::begin(Kind kind, Spot spot) {
  if (stack_.size() >= static_cast<std::size_t>(kMaxDepth)) { throw TreeStop(spot, too_deep()); }
  Frame frame;
  frame.node.kind = kind;
  frame.node.place = {file_, spot.line, spot.column, next_path()};
  charge(1, text_bytes(frame.node), spot);
  stack_.push_back(std::move(frame));
}

const Node& TreeBuilder::end() {
  Node node = std::move(stack_.back().node);
  stack_.pop_back();
  attach(std::move(node));
  return *last_;
}

void TreeBuilder::attach(Node node) {
  if (stack_.empty()) {
    root_ = std::move(node);
    last_ = &root_;
    return;
  }
  Frame& frame = stack_.back();
  if (frame.node.kind != Kind::mapping) {
    last_ = &frame.node.items.emplace_back(std::move(node));
    return;
  }
  frame.has_key = false;
  const auto [first, fresh] = frame.lines.emplace(frame.key, frame.key_spot.line);
  if (fresh) {
    const Spot spot = frame.key_spot;
    last_ =
        &frame.node.members.emplace_back(Member{std::move(frame.key), spot.line, spot.column, std::move(node)}).value;
    return;
  }
  if (duplicates_.size() < kMaxDuplicates) {
    duplicates_.push_back({{file_, frame.key_spot.line, frame.key_spot.column, node.place.path},
                           fmt::format("key {} is given twice; first in line {}", quote(frame.key), first->second)});
  }
  dropped_ = std::move(node);
  last_ = &dropped_;
}

// Depth is bounded by kMaxDepth, so the recursion is too.
void TreeBuilder::relocate(Node& node, std::string path, std::size_t depth, Spot spot) {
  if (!node.is_scalar() && depth >= static_cast<std::size_t>(kMaxDepth)) { throw TreeStop(spot, too_deep()); }
  node.place.path = std::move(path);
  charge(1, text_bytes(node), spot);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    relocate(node.items[i], fmt::format("{}/{}", node.place.path, i), depth + 1, spot);
  }
  for (Member& member : node.members) {
    charge(0, 2 * member.key.size(), spot);
    relocate(member.value, node.place.path + pointer_step(member.key), depth + 1, spot);
  }
}

void TreeBuilder::copy(const Node& original, Spot spot) {
  Node node = original;
  relocate(node, next_path(), stack_.size(), spot);
  attach(std::move(node));
}

Result<Node> TreeBuilder::finish() && {
  if (!duplicates_.empty()) { return tl::make_unexpected(Failure{std::move(duplicates_)}); }
  return std::move(root_);
}

}  // namespace orrery::config
