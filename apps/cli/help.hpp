// `orrery help TOPIC`: short texts on what commands have in common, and the terms of the glossary.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::cli {

// docs/glossary.md, embedded at build (cmake/embed_functions.cmake).
[[nodiscard]] std::string_view embedded_glossary();

// The text on a topic ("units") or a term ("mfu", in any case); nullopt: neither.
[[nodiscard]] std::optional<std::string> help_on(const std::string& about);

// Names of the topics, each with its summary, as lines of the overview.
[[nodiscard]] std::string help_topics();
// All topics and terms.
[[nodiscard]] std::vector<std::string> help_names();

}  // namespace orrery::cli
