#include "apps/cli/sizes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/command.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

constexpr double kMost = 1e15;  // whole numbers are exact, and more than any memory
constexpr std::size_t kMostSizes = 10'000;
constexpr std::uint64_t kMostFactor = 1'000'000;

// Sizes as nccl-tests takes them: "4096" is bytes, "8k" and "8K" are 8 KiB. Other texts as they are.
std::string with_unit(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view suffix = text.substr(digits);
  if (digits == 0 || suffix.size() > 1) { return std::string(text); }
  if (suffix.empty()) { return std::string(text) + "B"; }
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix.front())));
  if (std::string_view("KMGT").find(letter) == std::string_view::npos) { return std::string(text); }
  return fmt::format("{}{}iB", text.substr(0, digits), letter);
}

// Reads the value of one --size; errors name the item of the list.
class Reader {
 public:
  explicit Reader(std::string flag) : flag_(std::move(flag)) {}

  Result<void> read(std::string_view item) {
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      ORRERY_TRY(size, one(item));
      return add(size);
    }
    const std::size_t last_end = item.find(':', colon + 1);
    if (last_end == std::string_view::npos) {
      return fail(flag_place(flag_),
                  fmt::format("{} is not a range; write FIRST:LAST:STEP, such as 1KiB:1GiB:x2", quote(item)));
    }
    ORRERY_TRY(first, one(item.substr(0, colon)));
    ORRERY_TRY(last, one(item.substr(colon + 1, last_end - colon - 1)));
    if (last < first) {
      return fail(flag_place(flag_), fmt::format("{}: the last size is smaller than the first", quote(item)));
    }
    return range(first, last, item.substr(last_end + 1), item);
  }

  [[nodiscard]] std::vector<std::uint64_t> sizes() && { return std::move(sizes_); }

 private:
  [[nodiscard]] Result<std::uint64_t> one(std::string_view text) const {
    const auto value = config::parse_quantity(with_unit(text), config::Dimension::bytes, "B");
    if (!value) { return fail(flag_place(flag_), value.error()); }
    if (*value < 1 || *value != std::floor(*value) || *value > kMost) {
      return fail(flag_place(flag_), fmt::format("{} is not a whole number of bytes from 1 B to 1 PB", quote(text)));
    }
    return static_cast<std::uint64_t>(*value);
  }

  Result<void> range(std::uint64_t first, std::uint64_t last, std::string_view step, std::string_view item) {
    if (step.starts_with('+')) {
      ORRERY_TRY(more, one(step.substr(1)));
      for (std::uint64_t size = first; size <= last; size += more) {
        if (auto added = add(size); !added) { return added; }
      }
      return {};
    }
    std::uint64_t factor = 0;
    const std::string_view digits = step.starts_with('x') ? step.substr(1) : std::string_view();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
    if (error != std::errc() || end != digits.data() + digits.size() || factor < 2 || factor > kMostFactor) {
      return fail(flag_place(flag_), fmt::format("{} in {} is not a step; use a factor (x2) or an increment (+1MiB)",
                                                 quote(step), quote(item)));
    }
    for (std::uint64_t size = first; size <= last; size *= factor) {
      if (auto added = add(size); !added) { return added; }
    }
    return {};
  }

  Result<void> add(std::uint64_t size) {
    if (sizes_.size() == kMostSizes) { return fail(flag_place(flag_), fmt::format("more than {} sizes", kMostSizes)); }
    sizes_.push_back(size);
    return {};
  }

  std::string flag_;
  std::vector<std::uint64_t> sizes_;
};

}  // namespace

Result<std::vector<std::uint64_t>> sizes(const std::string& flag, const std::string& text) {
  Reader reader(flag);
  std::string_view rest = text;
  while (true) {
    const std::size_t end = rest.find(',');
    if (auto read = reader.read(rest.substr(0, end)); !read) { return tl::make_unexpected(read.error()); }
    if (end == std::string_view::npos) { return std::move(reader).sizes(); }
    rest.remove_prefix(end + 1);
  }
}

}  // namespace orrery::cli
