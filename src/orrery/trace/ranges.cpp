#include "orrery/trace/ranges.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <protozero/exception.hpp>

#include "orrery/core/parallel_for.hpp"
#include "orrery/trace/counting.hpp"
#include "orrery/trace/decode.hpp"
#include "orrery/trace/framing.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::Columns;
using graph::IdIndex;
using graph::IoInfo;
using graph::KeyIndex;
using graph::NodeIndex;
using graph::NodeRecord;
using graph::Text;
using graph::TextBlocks;
using graph::TextPool;

namespace {

constexpr std::size_t kMostRanges = std::numeric_limits<std::uint32_t>::max() - 1;

std::uint32_t narrowed(std::size_t size) { return static_cast<std::uint32_t>(size); }

// A dependency on a missing parent.
struct Missing {
  NodeIndex* place;
  std::uint64_t id;
};

// Records that one thread reads at once, and indices that are final only when all ranges are read.
struct Range {
  std::size_t first = 0;  // node
  std::size_t last = 0;   // node after the range
  EntryCounts begin;      // where its entries start in the columns
  EntryCounts counts;
  TextBlocks blocks;
  std::size_t text_bytes = 0;
  std::vector<Text> keys;
  std::vector<Missing> missing_ctrl;
  std::vector<Missing> missing_data;
  std::vector<graph::AttributeExtra> attribute_extra;
  std::vector<graph::NodeExtra> node_extra;
  Notes notes;
  bool good = true;
};

// Fills the entries of one range.
class RangeWriter {
 public:
  RangeWriter(Range& range, Columns& columns, const IdIndex& index)
      : range_(range), columns_(columns), index_(index), at_(range.begin) {}

  // False if the entries differ from those that were counted.
  bool put(std::size_t node, const NodeRecord& record) {
    columns_.name[node] = texts_.add(record.name);
    columns_.type[node] = record.type;
    columns_.start_us[node] = record.start_us;
    columns_.duration_us[node] = record.duration_us;
    if (!has_room(record) || columns_.id[node] != record.id) { return false; }
    put_deps(record.ctrl_deps, columns_.ctrl, at_.ctrl, range_.missing_ctrl);
    put_deps(record.data_deps, columns_.data, at_.data, range_.missing_data);
    columns_.inputs[node] = put_io(record.inputs);
    columns_.outputs[node] = put_io(record.outputs);
    for (const Attribute& attribute : record.attributes) { put_attribute(attribute); }
    columns_.ctrl_begin[node + 1] = narrowed(at_.ctrl);
    columns_.data_begin[node + 1] = narrowed(at_.data);
    columns_.attribute_begin[node + 1] = narrowed(at_.attributes);
    if (!record.unknown.empty()) { range_.node_extra.push_back({narrowed(node), texts_.add(record.unknown)}); }
    return true;
  }

  void finish() {
    range_.blocks = texts_.blocks();
    range_.text_bytes = texts_.bytes();
  }

 private:
  [[nodiscard]] bool has_room(const NodeRecord& record) const {
    const EntryCounts end = range_.begin + range_.counts;
    const std::size_t io = (record.inputs ? 1 : 0) + (record.outputs ? 1 : 0);
    return at_.ctrl + record.ctrl_deps.size() <= end.ctrl && at_.data + record.data_deps.size() <= end.data &&
           at_.attributes + record.attributes.size() <= end.attributes && at_.io + io <= end.io;
  }

  void put_deps(const std::vector<std::uint64_t>& ids, graph::Column<NodeIndex>& into, std::size_t& at,
                std::vector<Missing>& missing) {
    for (const std::uint64_t id : ids) {
      const auto found = index_.find(id, columns_.id);
      if (found) {
        into[at] = *found;
      } else {
        missing.push_back({&into[at], id});
      }
      ++at;
    }
  }

  std::uint32_t put_io(const std::optional<IoInfo>& io) {
    if (!io) { return 0; }
    columns_.io[at_.io] = {texts_.add(io->values), texts_.add(io->shapes), texts_.add(io->types)};
    return narrowed(++at_.io);
  }

  void put_attribute(const Attribute& attribute) {
    const graph::Value& value = attribute.value;
    const bool payload = graph::is_text(value.type()) || graph::is_list(value.type());
    const bool extra = !attribute.doc.empty() || !attribute.unknown.empty();
    const std::uint64_t bits =
        payload ? std::bit_cast<std::uint64_t>(texts_.add(value.payload()).encoded()) : value.bits();
    if (extra) {
      range_.attribute_extra.push_back(
          {narrowed(at_.attributes), texts_.add(attribute.doc), texts_.add(attribute.unknown)});
    }
    columns_.attributes[at_.attributes++] = {bits, key(attribute.name), value.type(), extra};
  }

  // Nodes usually have the attributes of the previous node, in its order: the key after the last one is tried first.
  KeyIndex key(std::string_view name) {
    for (const KeyIndex guess : {expected_key_, KeyIndex{0}}) {
      if (guess < range_.keys.size() && range_.keys[guess].view() == name) {
        expected_key_ = guess + 1;
        return guess;
      }
    }
    auto found = keys_.find(name);
    if (found == keys_.end()) {
      range_.keys.push_back(texts_.add(name));
      found = keys_.emplace(range_.keys.back().view(), narrowed(range_.keys.size() - 1)).first;
    }
    expected_key_ = found->second + 1;
    return found->second;
  }

  Range& range_;
  Columns& columns_;
  const IdIndex& index_;
  EntryCounts at_;
  TextPool texts_;
  std::unordered_map<std::string_view, KeyIndex> keys_;
  KeyIndex expected_key_ = 0;
};

class Reader {
 public:
  Reader(Source& source, std::string_view whole, ChakraVersion version, const ReadOptions& options)
      : source_(source), whole_(whole), version_(version), options_(options) {}

  std::optional<RangesRead> read(std::size_t begin, const graph::Metadata& metadata) {
    if (!find_records(begin)) { return std::nullopt; }
    columns_.id.resize(columns_.offset.size());
    for_each_range([&](Range& range) { count(range); });
    if (!place()) { return std::nullopt; }
    const IdIndex index(columns_.id);
    for_each_range([&](Range& range) { decode(range, index); });
    if (!all_good()) { return std::nullopt; }
    merge_keys();
    merge_missing();
    RangesRead read;
    for (Range& range : ranges_) { merge_rest(range, read.notes); }
    copy(metadata);
    read.graph = graph::Graph(std::move(columns_), index);
    return read;
  }

 private:
  template <class Body>
  void for_each_range(const Body& body) {
    parallel_for(ranges_.size(), options_.threads, [&](std::size_t i) { body(ranges_[i]); });
  }

  [[nodiscard]] bool all_good() const {
    for (const Range& range : ranges_) {
      if (!range.good) { return false; }
    }
    return true;
  }

  // Where every record starts, and the ranges that threads take.
  bool find_records(std::size_t begin) {
    auto& offsets = columns_.offset;
    offsets.reserve((whole_.size() - begin) / 64);
    std::size_t range_end = begin;
    for (std::size_t at = begin; at < whole_.size();) {
      const auto frame = frame_of(whole_.substr(at));
      if (!frame || frame->record_bytes > whole_.size() - at - frame->length_bytes) { return false; }
      if (at >= range_end) {
        ranges_.emplace_back().first = offsets.size();
        range_end = at + options_.range_bytes;
      }
      offsets.push_back(at);
      ranges_.back().last = offsets.size();
      at += frame->length_bytes + static_cast<std::size_t>(frame->record_bytes);
      if (frame->record_bytes > kMostRecordBytes) { return false; }
    }
    return offsets.size() <= kMostRanges;
  }

  [[nodiscard]] std::string_view record(std::size_t node) const {
    const std::string_view from = whole_.substr(columns_.offset[node]);
    const auto frame = frame_of(from);
    return from.substr(frame->length_bytes, static_cast<std::size_t>(frame->record_bytes));
  }

  void count(Range& range) {
    EntryCounter counter(version_);
    try {
      for (std::size_t node = range.first; node < range.last; ++node) { columns_.id[node] = counter.add(record(node)); }
    } catch (const protozero::exception&) { range.good = false; } catch (const WireError&) {
      range.good = false;
    }
    range.counts = counter.counts();
  }

  // Assigns every range its part of the columns.
  bool place() {
    if (!all_good()) { return false; }
    EntryCounts total;
    for (Range& range : ranges_) {
      range.begin = total;
      total = total + range.counts;
    }
    const std::size_t nodes = columns_.id.size();
    if (std::max({total.ctrl, total.data, total.attributes, total.io}) > kMostRanges) { return false; }
    columns_.name.resize(nodes);
    columns_.type.resize(nodes);
    columns_.start_us.resize(nodes);
    columns_.duration_us.resize(nodes);
    columns_.inputs.resize(nodes);
    columns_.outputs.resize(nodes);
    for (auto* begin : {&columns_.ctrl_begin, &columns_.data_begin, &columns_.attribute_begin}) {
      begin->resize(nodes + 1);
      begin->front() = 0;
    }
    columns_.ctrl.resize(total.ctrl);
    columns_.data.resize(total.data);
    columns_.attributes.resize(total.attributes);
    columns_.io.resize(total.io);
    return true;
  }

  void decode(Range& range, const IdIndex& index) {
    RangeWriter writer(range, columns_, index);
    Decoder decoder(version_);
    NodeRecord node;
    try {
      for (std::size_t i = range.first; i < range.last && range.good; ++i) {
        const std::string_view bytes = record(i);
        decoder.decode_node(bytes, node);
        range.good = writer.put(i, node);
        if (bytes.empty() || !decoder.anomalies().empty()) { note_anomalies(range, i, bytes, decoder); }
      }
    } catch (const WireError&) { range.good = false; }
    writer.finish();
    source_.forget(columns_.offset[range.first],
                   range.last < columns_.offset.size() ? columns_.offset[range.last] : whole_.size());
  }

  void note_anomalies(Range& range, std::size_t node, std::string_view bytes, const Decoder& decoder) const {
    const std::uint64_t id = columns_.id[node];
    if (bytes.empty()) { range.notes.add(NoteKind::anomaly, kEmptyRecord, columns_.offset[node], id); }
    for (const Anomaly& anomaly : decoder.anomalies()) {
      range.notes.add(NoteKind::anomaly, anomaly.text(), columns_.offset[node], id);
    }
  }

  // Keys are numbered per range; over all ranges they are numbered in the order of first use.
  void merge_keys() {
    std::unordered_map<std::string_view, KeyIndex> keys;
    std::vector<std::vector<KeyIndex>> renumbered(ranges_.size());
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      for (const Text key : ranges_[r].keys) {
        const auto [entry, is_new] = keys.try_emplace(key.view(), narrowed(columns_.keys.size()));
        if (is_new) { columns_.keys.push_back(key); }
        renumbered[r].push_back(entry->second);
      }
    }
    parallel_for(ranges_.size(), options_.threads, [&](std::size_t r) {
      const auto& numbers = renumbered[r];
      bool same = true;
      for (std::size_t k = 0; k < numbers.size(); ++k) { same = same && numbers[k] == k; }
      if (same) { return; }
      const std::size_t end = ranges_[r].begin.attributes + ranges_[r].counts.attributes;
      for (std::size_t at = ranges_[r].begin.attributes; at < end; ++at) {
        columns_.attributes[at].key = numbers[columns_.attributes[at].key];
      }
    });
  }

  // Control dependencies first, then data, as a builder numbers them.
  void merge_missing() {
    std::unordered_map<std::uint64_t, NodeIndex> missing;
    for (const auto list : {&Range::missing_ctrl, &Range::missing_data}) {
      for (const Range& range : ranges_) {
        for (const Missing& one : range.*list) {
          const auto [entry, is_new] =
              missing.try_emplace(one.id, narrowed(columns_.id.size() + columns_.missing.size()));
          if (is_new) { columns_.missing.push_back(one.id); }
          *one.place = entry->second;
        }
      }
    }
  }

  void merge_rest(Range& range, Notes& notes) {
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(columns_.attribute_extra, range.attribute_extra);
    append(columns_.node_extra, range.node_extra);
    append(columns_.blocks, range.blocks);
    columns_.text_bytes += range.text_bytes;
    notes.add_all(range.notes);
  }

  void copy(const graph::Metadata& metadata) {
    auto kept = graph::GraphBuilder::copied(metadata);
    columns_.metadata = std::move(kept.metadata);
    columns_.blocks.insert(columns_.blocks.end(), kept.blocks.begin(), kept.blocks.end());
    columns_.text_bytes += kept.text_bytes;
  }

  Source& source_;
  std::string_view whole_;
  ChakraVersion version_;
  const ReadOptions& options_;
  Columns columns_;
  std::vector<Range> ranges_;
};

}  // namespace

std::optional<RangesRead> read_ranges(Source& source, std::string_view whole, std::size_t begin,
                                      const graph::Metadata& metadata, ChakraVersion version,
                                      const ReadOptions& options) {
  return Reader(source, whole, version, options).read(begin, metadata);
}

}  // namespace orrery::trace
