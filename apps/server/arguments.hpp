// A request's JSON object as arguments of a command: {"model": "llama-3.1-8b", "devices": 64} is
// --model llama-3.1-8b --devices 64.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/server/setup.hpp"
#include "orrery/core/error.hpp"

namespace orrery::server {

// The form of the command that a request means: that of its "task", else the one without a task. `forms`: of one
// command, at least the one without a task.
[[nodiscard]] const ServedCommand& form_of(const std::vector<const ServedCommand*>& forms, const std::string& body);

struct Arguments {
  std::vector<std::string> values;
  // Files to write into the folder in which the command runs: documents that the request contains.
  std::map<std::string, std::string> documents;
  bool wants_timeline = false;  // the command writes kTimelineFile, whose content belongs to the answer
};

inline constexpr const char* kTimelineFile = "timeline.json";

// `body`: the text of one JSON object. Fails for keys that are no flags of the command, with the nearest one, and for
// values that name files of the server's machine: a model or a cluster is a name of the catalogue or a document (a JSON
// object, as in a config.json or a cluster file). {"timeline": true} asks for the timeline in the answer.
[[nodiscard]] Result<Arguments> arguments_of(const ServedCommand& command, const std::string& body);

}  // namespace orrery::server
