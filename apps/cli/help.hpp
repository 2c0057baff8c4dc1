// `orrery help TOPIC`: short texts on what commands have in common, and the terms of the glossary.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/embedded_file.hpp"

namespace orrery::cli {

// docs/glossary.md.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

// The text on a topic ("units") or a term ("mfu", in any case); nullopt: neither.
[[nodiscard]] std::optional<std::string> help_on(const std::string& about);

// Names of the topics, each with its summary, as lines of the overview.
[[nodiscard]] std::string help_topics();
// All topics and terms.
[[nodiscard]] std::vector<std::string> help_names();

}  // namespace orrery::cli
