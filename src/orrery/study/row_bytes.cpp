#include "orrery/study/row_bytes.hpp"

#include <cstring>

#include "orrery/core/error.hpp"

namespace orrery::study {

using results::StudyCell;
using results::StudyRow;

namespace {

template <class T>
void put(std::string& out, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  template <class T>
  T take() {
    ORRERY_ASSERT(rest_.size() >= sizeof(T));
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string take_text() {
    const auto size = take<std::uint64_t>();
    ORRERY_ASSERT(rest_.size() >= size);
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
};

constexpr char kNothing = 0, kNumber = 1, kText = 2;

void put_cell(std::string& out, const StudyCell& cell) {
  if (const double* number = results::number_of(cell)) {
    out += kNumber;
    put(out, *number);
  } else if (const std::string* text = results::text_of_cell(cell)) {
    out += kText;
    put_text(out, *text);
  } else {
    out += kNothing;
  }
}

StudyCell take_cell(ByteReader& in) {
  const char kind = in.take<char>();
  if (kind == kNumber) { return in.take<double>(); }
  if (kind == kText) { return in.take_text(); }
  return {};
}

}  // namespace

std::string bytes_of_rows(std::span<const StudyRow> rows) {
  std::string out;
  for (const StudyRow& row : rows) {
    put(out, row.id);
    put(out, static_cast<std::uint64_t>(row.columns.size()));
    for (const auto& cell : row.columns) { put_cell(out, cell); }
    out += static_cast<char>(row.status);
    put_text(out, row.reason);
    for (const auto& metric : row.metrics) { put_cell(out, metric ? StudyCell(*metric) : StudyCell()); }
    for (const std::string* text : {&row.plan, &row.breakdown, &row.comm, &row.passes, &row.memory, &row.input_hash}) {
      put_text(out, *text);
    }
  }
  return out;
}

std::vector<StudyRow> rows_of_bytes(std::string_view bytes) {
  std::vector<StudyRow> rows;
  ByteReader in(bytes);
  while (!in.at_end()) {
    StudyRow row;
    row.id = in.take<std::int64_t>();
    row.columns.resize(in.take<std::uint64_t>());
    for (auto& cell : row.columns) { cell = take_cell(in); }
    row.status = static_cast<results::StudyStatus>(in.take<char>());
    row.reason = in.take_text();
    for (auto& metric : row.metrics) {
      const StudyCell cell = take_cell(in);
      if (const double* number = results::number_of(cell)) { metric = *number; }
    }
    for (std::string* text : {&row.plan, &row.breakdown, &row.comm, &row.passes, &row.memory, &row.input_hash}) {
      *text = in.take_text();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string bytes_of_ids(std::span<const std::int64_t> ids) {
  std::string out;
  for (const std::int64_t id : ids) { put(out, id); }
  return out;
}

std::vector<std::int64_t> ids_of_bytes(std::string_view bytes) {
  std::vector<std::int64_t> ids;
  ByteReader in(bytes);
  while (!in.at_end()) { ids.push_back(in.take<std::int64_t>()); }
  return ids;
}

}  // namespace orrery::study
