// References in a description tree: a catalogue name or a file's path where a whole description may stand.
//
//   accelerator: h100-sxm                              an entry
//   accelerator: ../parts/my_gpu.yaml                  a file; relative paths count from the folder of the file that
//   says so accelerator: {use: h100-sxm, memory: 96 GiB}       either, with changes
#pragma once

#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/entry.hpp"

namespace orrery::hardware {

// What went wrong with references, and the values that stay because of it, by their places.
struct Unresolved {
  std::vector<Diagnostic> complaints;
  std::vector<Place> places;
};

// Replaces a reference by the tree it stands for, whose places are those of its own file. A value that is no reference
// (a mapping without `use`, or of the wrong kind) stays. Changes replace whole members; the citations of the figures
// they replace are dropped. What goes wrong is added to `unresolved`, and the value stays.
void resolve_reference(config::Node& value, const EntryKind& kind, const std::string& data_directory,
                       Unresolved& unresolved);

// A description without a name gets `name`.
void name_node(config::Node& node, const std::string& name);

}  // namespace orrery::hardware
