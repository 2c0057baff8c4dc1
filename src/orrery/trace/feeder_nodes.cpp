#include "orrery/trace/feeder_nodes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::trace {

using graph::NodeRecord;

namespace {

// Bytes that an access out of order maps: the kernel also maps the neighbouring pages (fault-around).
constexpr std::uint64_t kFaultAround = std::uint64_t{64} << 10;

// Concatenates texts and updates their views.
class TextMover {
 public:
  explicit TextMover(std::string& into) : into_(into) { into_.clear(); }

  template <class Visit>
  static void each(NodeRecord& record, const Visit& visit) {
    visit(record.name);
    visit(record.unknown);
    for (auto* io : {&record.inputs, &record.outputs}) {
      if (!*io) { continue; }
      for (auto* text : {&(*io)->values, &(*io)->shapes, &(*io)->types}) { visit(*text); }
    }
    for (graph::Attribute& attribute : record.attributes) {
      visit(attribute.name);
      visit(attribute.doc);
      visit(attribute.unknown);
      std::string_view payload = attribute.value.payload();
      if (payload.empty()) { continue; }
      visit(payload);
      attribute.value = graph::Value::view(attribute.value.type(), payload);
    }
  }

  void move(NodeRecord& record) {
    std::size_t bytes = 0;
    each(record, [&](const std::string_view& text) { bytes += text.size(); });
    into_.reserve(bytes);
    each(record, [&](std::string_view& text) {
      const std::size_t begin = into_.size();
      into_ += text;
      text = {into_.data() + begin, text.size()};
    });
  }

 private:
  std::string& into_;
};

}  // namespace

Result<std::unique_ptr<NodeStore>> FileNodes::of(std::unique_ptr<Source> source, const std::string& name,
                                                 const FeederOptions& options) {
  ORRERY_TRY(stream, ChakraStream::of_bytes(*source->whole(), name, options.read));
  return std::unique_ptr<NodeStore>(new FileNodes(std::move(source), std::move(stream), options.mapped_bytes));
}

Result<NodeStore::Item> FileNodes::next() {
  ORRERY_TRY(record, stream_.next());
  if (record == nullptr) { return Item{}; }
  ++records_;
  touched(stream_.offset());
  return Item{stream_.offset(), record};
}

Result<const NodeRecord*> FileNodes::at(std::uint64_t place) {
  touched(place);
  return stream_.at(place);
}

// The file is mapped, and accessed pages stay in memory until they are released. Records in order map their own length;
// a jump maps more.
void FileNodes::touched(std::uint64_t begin) {
  const bool near = begin >= last_ && begin - last_ < kFaultAround;
  resident_ += near ? begin - last_ : kFaultAround;
  last_ = begin;
  if (resident_ < most_resident_) { return; }
  resident_ = 0;
  // The record there is still in use: its pages are mapped again on access.
  source_->forget(0, source_->whole()->size());
}

std::size_t FileNodes::estimate() const {
  if (last_ == 0) { return records_; }
  const double rate = static_cast<double>(records_) / static_cast<double>(last_);
  return static_cast<std::size_t>(rate * static_cast<double>(source_->whole()->size()) * 1.02) + 16;
}

std::string FileNodes::where(std::uint64_t place) const { return fmt::format("byte {}, ", place); }

Result<NodeStore::Item> GraphNodes::next() {
  if (next_ == graph_.node_count()) { return Item{}; }
  graph_.copy_record(next_, record_);
  return Item{next_++, &record_};
}

Result<const NodeRecord*> GraphNodes::at(std::uint64_t place) {
  graph_.copy_record(static_cast<graph::NodeIndex>(place), record_);
  return &record_;
}

const NodeRecord* RecordCache::find(std::uint32_t position) const {
  if (slots_.empty()) { return nullptr; }
  const Slot& slot = slots_[position % slots_.size()];
  return slot.used && slot.position == position ? &slot.record : nullptr;
}

const NodeRecord* RecordCache::keep(std::uint32_t position, const NodeRecord& record) {
  if (slots_.empty()) { return &record; }
  Slot& slot = slots_[position % slots_.size()];
  slot.used = true;
  slot.position = position;
  slot.record = record;
  TextMover(slot.texts).move(slot.record);
  return &slot.record;
}

}  // namespace orrery::trace
