#include "orrery/profile/host_comm.hpp"

#include <array>
#include <numeric>

#include "orrery/profile/decimal.hpp"
#include "orrery/profile/json_pull.hpp"
#include "orrery/profile/metadata.hpp"

namespace orrery::profile {

namespace {

bool is_text(std::string_view value) { return value.size() >= 2 && value.front() == '"'; }
bool is_list(std::string_view value) { return !value.empty() && value.front() == '['; }
std::string_view unquoted(std::string_view value) { return is_text(value) ? value.substr(1, value.size() - 2) : value; }

// The elements of a list as they are in the file; none if it is no list.
std::vector<std::string_view> elements_of(std::string_view list) {
  std::vector<std::string_view> elements;
  if (!is_list(list)) { return elements; }
  JsonPull json(list, true);
  json.list([&] { elements.push_back(json.value()); });
  return elements;
}

// PyTorch's name of a type in records ("BFloat16") of its name in lists of types ("c10::BFloat16").
std::string record_type_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kNames = {{{"float", "Float"},
                                                                                     {"double", "Double"},
                                                                                     {"long int", "Long"},
                                                                                     {"long", "Long"},
                                                                                     {"int", "Int"},
                                                                                     {"short", "Short"},
                                                                                     {"signed char", "Char"},
                                                                                     {"unsigned char", "Byte"},
                                                                                     {"bool", "Bool"},
                                                                                     {"short int", "Short"}}};
  for (const auto& [listed, recorded] : kNames) {
    if (type == listed) { return std::string(recorded); }
  }
  return std::string(type.starts_with("c10::") ? type.substr(5) : type);
}

std::uint64_t all_elements(std::string_view values) {
  std::uint64_t sum = 0;
  for_each_tensor(values, [&](const HostTensor& tensor) { sum += tensor.elements; });
  return sum;
}

// The type in the first "Tensor(…)".
std::string_view tensor_type(std::string_view types) {
  constexpr std::string_view kTensor = "Tensor(";
  const std::size_t at = types.find(kTensor);
  if (at == std::string_view::npos) { return {}; }
  const std::string_view rest = types.substr(at + kTensor.size());
  return rest.substr(0, rest.find(')'));
}

void set_group(std::string_view value, HostComm& comm) {
  if (is_list(value)) {  // from 1.0.3 on
    const auto pair = elements_of(value);
    if (!pair.empty()) { comm.record.group = decoded_text(unquoted(pair[0])); }
    if (pair.size() > 1) { comm.record.group_description = decoded_text(unquoted(pair[1])); }
  } else if (is_text(value)) {
    comm.record.group = decoded_text(unquoted(value));
  } else if (const auto address = integer_of<std::uint64_t>(value); address && *address != 0) {
    comm.group_address = address;
  }
}

// A number, or a number and whether it is of a message.
std::optional<std::uint64_t> sequence_of(std::string_view value) {
  const auto pair = elements_of(value);
  return integer_of<std::uint64_t>(pair.empty() ? value : pair.front());
}

}  // namespace

void for_each_tensor(std::string_view values, const std::function<void(const HostTensor&)>& take) {
  constexpr std::size_t kParts = 6;  // tensor, storage, offset, elements, bytes of an element, device
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  for (std::size_t at = values.find('['); at != std::string_view::npos; at = values.find('[', at + 1)) {
    const std::size_t end = values.find_first_of("[]", at + 1);
    if (end == std::string_view::npos || values[end] != ']') { continue; }
    std::array<std::string_view, kParts> parts{};
    std::size_t count = 0;
    for (std::string_view rest = values.substr(at + 1, end - at - 1); count < kParts && !rest.empty(); ++count) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      parts[count] = rest.substr(0, comma);
      while (parts[count].starts_with(' ')) { parts[count].remove_prefix(1); }
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    const auto id = integer_of<std::uint64_t>(parts[0]);
    const auto elements = integer_of<std::uint64_t>(parts[3]);
    const auto bytes = integer_of<std::uint64_t>(parts[4]);
    if (count < kParts || !is_text(parts[5]) || !id || !elements || !bytes) { continue; }
    take({*id, std::min(*elements, kMost), std::min<std::uint64_t>(*bytes, 64)});
  }
}

std::string plain_types(std::string_view types) {
  std::string plain = "[";
  for (const std::string_view type : elements_of(types)) {
    plain += plain.size() > 1 ? ",\"" : "\"";
    plain += tensor_type(type);
    plain += '"';
  }
  return plain + "]";
}

HostComm host_comm_of(const RawHostNode& node) {
  HostComm comm;
  CommRecord& record = comm.record;
  const auto values = elements_of(node.inputs);
  // The name is the last text; the group before it may be one, too.
  std::size_t name = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_text(values[i])) { name = i; }
  }
  if (name < values.size() && name >= 3) {
    record.name = decoded_text(unquoted(values[name]));
    record.peer_or_root = integer_of<std::int64_t>(values[name - 1]);
    set_group(values[name - 2], comm);
    record.sequence = sequence_of(values[name - 3]);
    std::uint64_t in = 0;
    for (std::size_t i = 0; i + 3 < name; ++i) { in += all_elements(values[i]); }
    record.in_elements = static_cast<std::int64_t>(in);
    record.out_elements = static_cast<std::int64_t>(all_elements(node.outputs));
    record.dtype = record_type_of(tensor_type(node.input_types));
    const auto world = integer_of<std::int64_t>(values.back());
    if (world && values.size() > name + 3) { record.group_size = *world; }
  }
  if (!node.collective.empty()) {
    record.name = decoded_text(node.collective);
    record.dtype = decoded_text(node.dtype);
    record.in_elements = integer_of<std::int64_t>(node.in_elements).value_or(0);
    record.out_elements = integer_of<std::int64_t>(node.out_elements).value_or(0);
    record.group = decoded_text(node.group);
    record.group_description = decoded_text(node.group_description);
    record.group_size = integer_of<std::int64_t>(node.group_size).value_or(record.group_size);
  }
  return comm;
}

std::vector<HostGroup> host_groups_of(const RawHostNode& node) {
  std::vector<HostGroup> groups;
  const auto values = elements_of(node.inputs);
  if (values.empty() || !is_text(values.front())) { return groups; }
  const std::string text = decoded_text(unquoted(values.front()));
  for (const std::string_view entry : elements_of(text)) {
    if (!entry.starts_with('{')) { continue; }
    HostGroup group;
    std::uint64_t size = 0;
    JsonPull json(entry, true);
    json.object([&](std::string_view key) {
      const std::string_view value = json.scalar();
      if (key == "pg_name") { group.group.name = decoded_text(value); }
      if (key == "pg_desc") { group.group.description = decoded_text(value); }
      if (key == "ranks") { group.group.ranks = ranks_of_text(value); }
      if (key == "group_size") { size = integer_of<std::uint64_t>(value).value_or(0); }
      if (key == "backend_id") { group.address = integer_of<std::uint64_t>(value); }
    });
    constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
    if (group.group.ranks.empty() && size > 0 && size <= kMost) {
      group.group.ranks.resize(size);
      std::iota(group.group.ranks.begin(), group.group.ranks.end(), 0);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery::profile
