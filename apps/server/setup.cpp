#include "apps/server/setup.hpp"

#include <charconv>
#include <cstddef>

namespace orrery::server {

namespace {

constexpr std::string_view kVersion = "orrery-web/1";

// Texts one after another, each with a zero byte at its end. A list is its length, then its elements.
class Packer {
 public:
  void operator()(const std::string& text) { text_.append(text).push_back('\0'); }
  void operator()(std::int64_t number) { (*this)(std::to_string(number)); }
  template <typename Element, typename Pack>
  void list(const std::vector<Element>& elements, Pack pack) {
    (*this)(static_cast<std::int64_t>(elements.size()));
    for (const Element& element : elements) { pack(element); }
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view text) : rest_(text) {}

  std::string text() {
    const std::size_t end = rest_.find('\0');
    if (end == std::string_view::npos) { is_sound_ = false; }
    if (!is_sound_) { return {}; }
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::int64_t number() {
    const std::string digits = text();
    std::int64_t number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    is_sound_ = is_sound_ && read.ec == std::errc() && read.ptr == digits.data() + digits.size();
    return is_sound_ ? number : 0;
  }
  template <typename Element, typename Unpack>
  std::vector<Element> list(Unpack unpack) {
    std::vector<Element> elements;
    for (std::int64_t left = number(); left > 0 && is_sound_; --left) { elements.push_back(unpack()); }
    return elements;
  }
  [[nodiscard]] bool is_at_sound_end() const { return is_sound_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_sound_ = true;
};

void pack_flag(Packer& pack, const ServedFlag& flag) {
  pack(flag.name);
  pack(static_cast<std::int64_t>(flag.kind));
  for (const auto* text : {&flag.value, &flag.negation, &flag.doc, &flag.group}) { pack(*text); }
  pack.list(flag.choices, [&](const std::string& choice) { pack(choice); });
}

ServedFlag unpack_flag(Unpacker& from) {
  ServedFlag flag;
  flag.name = from.text();
  flag.kind = static_cast<FlagKind>(from.number());
  for (auto* text : {&flag.value, &flag.negation, &flag.doc, &flag.group}) { *text = from.text(); }
  flag.choices = from.list<std::string>([&] { return from.text(); });
  return flag;
}

void pack_command(Packer& pack, const ServedCommand& command) {
  pack(command.name);
  pack.list(command.flags, [&](const ServedFlag& flag) { pack_flag(pack, flag); });
  pack.list(command.positionals, [&](const std::string& name) { pack(name); });
  pack(static_cast<std::int64_t>(command.is_long));
  pack(command.task);
}

ServedCommand unpack_command(Unpacker& from) {
  ServedCommand command;
  command.name = from.text();
  command.flags = from.list<ServedFlag>([&] { return unpack_flag(from); });
  command.positionals = from.list<std::string>([&] { return from.text(); });
  command.is_long = from.number() != 0;
  command.task = from.text();
  return command;
}

}  // namespace

std::string packed(const Setup& setup) {
  Packer pack;
  pack(std::string(kVersion));
  for (const auto* text : {&setup.program, &setup.address, &setup.token, &setup.study}) { pack(*text); }
  pack(setup.port);
  pack(static_cast<std::int64_t>(setup.opens_page));
  pack.list(setup.commands, [&](const ServedCommand& command) { pack_command(pack, command); });
  return std::move(pack).text();
}

std::optional<Setup> unpacked(std::string_view text) {
  Unpacker from(text);
  if (from.text() != kVersion) { return std::nullopt; }
  Setup setup;
  for (auto* field : {&setup.program, &setup.address, &setup.token, &setup.study}) { *field = from.text(); }
  setup.port = static_cast<int>(from.number());
  setup.opens_page = from.number() != 0;
  setup.commands = from.list<ServedCommand>([&] { return unpack_command(from); });
  return from.is_at_sound_end() ? std::optional(std::move(setup)) : std::nullopt;
}

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

}  // namespace orrery::server
