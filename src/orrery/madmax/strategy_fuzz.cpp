// Any text of --strategy, --local-batch and --freeze gives valid values, or an error with the flag as its place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/madmax/job.hpp"

namespace {

using namespace orrery;
using namespace orrery::madmax;

SampleWork small_work() {
  SampleWork work;
  work.model = "fuzzed";
  work.is_recommender = true;
  work.dense_bytes = work.table_bytes = 2;
  work.shapes = {{LayerClass::mlp, 4, 8, 2, 1},
                 {LayerClass::attention, 4, 8, 2, 1},
                 {LayerClass::fc, 4, 8, 2, 1},
                 {LayerClass::moe, 16, 8, 2, 4}};
  work.layers = {{Part::bottom, 0, 0}, {Part::bottom, 1, 0}, {Part::attention, 0, 1},
                 {Part::fc, 0, 2},     {Part::top, 0, 3},    {Part::top, 1, 3}};
  work.reads_embedding = 2;
  return work;
}

System small_system() {
  System system;
  system.name = "fuzzed";
  system.devices = 4;
  system.devices_per_node = 2;
  return system;
}

template <class T>
void expect_places(const Result<T>& read) {
  if (read) { return; }
  ORRERY_ASSERT(!read.error().diagnostics.empty());
  for (const auto& diagnostic : read.error().diagnostics) { ORRERY_ASSERT(diagnostic.place.path.starts_with("--")); }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const SampleWork work = small_work();
  const System system = small_system();
  const auto typed = strategies_from(text, work, system);
  expect_places(typed);
  if (typed) {
    const std::string printed = text_of(completed(*typed, work), work);
    const auto again = strategies_from(printed, work, system);
    ORRERY_ASSERT(again && text_of(completed(*again, work), work) == printed);
  }
  const auto local = local_batches_from(text, work);
  expect_places(local);
  if (local) { expect_places(global_batch_of({}, *local, completed({}, work), work, system)); }
  expect_places(frozen_from(text, work));
  return 0;
}
