#include "orrery/validate/columns.hpp"

#include <charconv>
#include <system_error>

#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

// Above every real count; products of two stay exact.
constexpr double kLargestCount = 2147483648.0;

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) { return {}; }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<double> number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) { return std::nullopt; }
  return value;
}

std::string_view cell_text(const Csv& csv, const CsvRow& row, std::string_view column) {
  const auto cell = csv.column(column);
  return cell ? trimmed(row.cells[*cell]) : std::string_view{};
}

namespace {

// Of cells that hold a number.
bool is_blank(std::string_view text) {
  return is_not_stated(text) || text == "none" || text == "None" || text == "auto";
}

// "1,024" of a cell in quotes: commas before groups of three.
std::string without_commas(std::string_view text) {
  const auto first = text.find(',');
  bool grouped = first != std::string_view::npos && (text.size() - first) % 4 == 0;
  for (std::size_t i = first; grouped && i < text.size(); ++i) { grouped = (text[i] == ',') == ((i - first) % 4 == 0); }
  std::string out(text);
  if (grouped) { std::erase(out, ','); }
  return out;
}

}  // namespace

std::string store(std::string& member, std::string_view text, double) {
  if (!is_not_stated(text)) { member = text; }
  return {};
}

std::string store(std::optional<std::int64_t>& member, std::string_view text, double smallest) {
  if (is_blank(text)) { return {}; }
  const auto value = number(without_commas(text));
  if (value && *value == 0.0 && smallest == 1.0) { return {}; }  // no such thing: a degree of a kind that is not used
  if (!value || *value != std::floor(*value)) { return "is not a whole number"; }
  if (*value < smallest) { return fmt::format("is less than {}", smallest); }
  if (*value > kLargestCount) { return fmt::format("is more than {:.0f}", kLargestCount); }
  member = static_cast<std::int64_t>(*value);
  return {};
}

std::string store(std::optional<double>& member, std::string_view text, double) {
  if (is_blank(text)) { return {}; }
  const auto value = number(text);
  if (!value || *value <= 0.0) { return "is not a positive number"; }
  member = value;
  return {};
}

}  // namespace orrery::validate
