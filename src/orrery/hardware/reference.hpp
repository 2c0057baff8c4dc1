// References in a description tree: a catalogue name or a path instead of a whole description.
//
//   accelerator: h100-sxm                              a catalogue entry
//   accelerator: ../parts/my_gpu.yaml                  a file; the path is relative to the file that refers to it
//   accelerator: {use: h100-sxm, memory: 96 GiB}       either of them, with changes
#pragma once

#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/entry.hpp"

namespace orrery::hardware {

// Errors of references, and the places of the values that were not replaced because of them.
struct Unresolved {
  std::vector<Diagnostic> complaints;
  std::vector<Place> places;
};

// Replaces a reference by the tree of the entry, whose places are those of its own file. A value that is no reference
// (a mapping without `use`, or of the wrong kind) is not changed. Changes replace whole members; citations of the
// figures that they replace are dropped. Errors are added to `unresolved`, and the value is not changed.
void resolve_reference(config::Node& value, const EntryKind& kind, const std::string& data_directory,
                       Unresolved& unresolved);

// `topology: network.yml`, or {use: network.yml, routing: ecmp}: a network file of ASTRA-sim as the description that
// `orrery describe network.yml` prints. Errors of the file have its places; later ones that of the reference.
void resolve_topology(config::Node& value, Unresolved& unresolved);

// A description without a name gets `name`.
void name_node(config::Node& node, const std::string& name);

}  // namespace orrery::hardware
