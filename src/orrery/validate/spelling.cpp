#include "orrery/validate/spelling.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

namespace orrery::validate {

namespace {

using parallel::Recompute;
using Words = std::initializer_list<std::string_view>;

bool is_one_of(const std::string& text, Words words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Beginnings of what tables write: a choice, how whole layers are chosen (Megatron-Core's --recompute-method), or the
// modules of a layer that are recomputed (--recompute-modules). Modules other than the attention core are taken as
// selective, the nearest choice.
constexpr std::array<std::pair<std::string_view, Recompute>, 15> kRecompute = {{
    {"none", Recompute::none},
    {"selective", Recompute::selective},
    {"core-attn", Recompute::selective},
    {"attention", Recompute::selective},
    {"attn", Recompute::selective},
    {"moe-act", Recompute::selective},
    {"layernorm", Recompute::selective},
    {"mla-up-proj", Recompute::selective},
    {"mlp", Recompute::selective},
    {"shared-experts", Recompute::selective},
    {"sac", Recompute::selective},  // torchtitan's selective activation checkpointing
    {"full", Recompute::full},
    {"uniform", Recompute::full},
    {"block", Recompute::full},
    {"activation-checkpointing", Recompute::full},
}};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::string dashed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool gap = c == ' ' || c == '_' || c == '-';
    if (gap && (out.empty() || out.back() == '-')) { continue; }
    out += gap ? '-' : lower(c);
  }
  if (out.ends_with('-')) { out.pop_back(); }
  return out;
}

std::string letters_and_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) { out += lower(c); }
  }
  return out;
}

bool is_not_stated(std::string_view text) {
  return text.empty() || text == "-" || text == "?" ||
         is_one_of(dashed(text), {"n/a", "na", "nan", "null", "unknown", "not-stated"});
}

std::optional<bool> yes_or_no(std::string_view text) {
  const std::string word = letters_and_digits(text);
  if (is_one_of(word, {"yes", "y", "true", "on", "1"})) { return true; }
  if (is_one_of(word, {"no", "n", "false", "off", "none", "0"})) { return false; }
  return std::nullopt;
}

std::optional<Recompute> recompute_spelled(std::string_view text) {
  const std::string words = dashed(text);
  for (const auto& [beginning, recompute] : kRecompute) {
    if (words.starts_with(beginning)) { return recompute; }
  }
  const auto answer = yes_or_no(words);
  if (!answer) { return std::nullopt; }
  return *answer ? Recompute::full : Recompute::none;
}

bool is_older(std::string_view version, std::initializer_list<int> than) {
  version.remove_prefix(std::min(version.size(), version.find_first_of("0123456789")));  // "v0.5", "vLLM 0.10.0, RHEL"
  const bool is_number = !version.empty();
  for (const int other : than) {
    int number = 0;
    const char* const end = version.data() + version.size();
    const auto [rest, error] = std::from_chars(version.data(), end, number);
    if (error != std::errc()) { return is_number; }
    if (number != other) { return number < other; }
    version = std::string_view(rest, static_cast<std::size_t>(end - rest));
    if (version.starts_with('.')) { version.remove_prefix(1); }
  }
  return false;
}

}  // namespace orrery::validate
