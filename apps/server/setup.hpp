// What `orrery web` hands to the server, a program of its own (orrery-web): its flags, and the table of commands that
// the server offers. Only `orrery` knows the flags of its commands; only orrery-web is compiled with httplib.
//
// `orrery web` writes the packed setup to an anonymous file and becomes `orrery-web FD`, where FD is the file's
// descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::server {

enum class FlagKind : std::uint8_t {
  value,   // takes one value
  many,    // takes a value each time
  toggle,  // true or false
};

struct ServedFlag {
  std::string name;  // without dashes
  FlagKind kind = FlagKind::value;
  std::string value;     // what the help calls its value: "N", "NAME|FILE"
  std::string negation;  // of a toggle, without dashes: "no-dp-overlap"; empty: it has none
  std::string doc, group;
  std::vector<std::string> choices;
};

// A command that the server runs.
struct ServedCommand {
  std::string name;
  std::vector<ServedFlag> flags;
  std::vector<std::string> positionals;  // in their order
  bool is_long = false;                  // may take longer than a few seconds
  std::string task = {};                 // the form of the command for requests of this task; empty: of the others
};

struct Setup {
  std::string program;  // path of `orrery`, which runs the commands
  std::string address = "127.0.0.1";
  int port = 8080;          // 0: any that is free
  std::string token;        // needed for other addresses than loopback ones
  std::string study;        // database of the study that /study shows; empty: none
  bool opens_page = false;  // in the browser
  std::vector<ServedCommand> commands;
};

// The setup as one text, and back; no text of it contains a zero byte. Nothing: the text is not of this version.
[[nodiscard]] std::string packed(const Setup& setup);
[[nodiscard]] std::optional<Setup> unpacked(std::string_view text);

[[nodiscard]] bool is_loopback(std::string_view address);

}  // namespace orrery::server
