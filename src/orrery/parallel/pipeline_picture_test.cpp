// The drawings in docs/models/schedules agree with the orders and the solver. This test writes the tasks that
// tools/draw_schedule.py draws, and compares them with the existing file.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_picture_test {
namespace {

using Kind = PipelineTask::Kind;

constexpr const char* kFile = ORRERY_SOURCE_DATA_DIR "/../docs/models/schedules/tasks.json";

struct Picture {
  const char* name;
  const char* title;
  PipelineShape shape;
};

// [letter, chunk, micro-batch, start, end], and a pair's second micro-batch.
std::string text(const SolvedTask& solved, bool splits) {
  const PipelineTask& task = solved.task;
  const auto line = [&](char letter) {
    return fmt::format("[\"{}\", {}, {}, {}, {}", letter, task.chunk, task.micro_batch, solved.start, solved.end);
  };
  switch (task.kind) {
    case Kind::forward: return line('F') + "]";
    case Kind::backward: return line(splits && task.splits ? 'I' : 'B') + "]";
    case Kind::weight: return line('W') + "]";
    case Kind::pair: return line('P') + fmt::format(", {}]", task.paired_micro_batch);
  }
  return {};
}

// A forward takes 1, input gradients 1, weight gradients 1, a transfer 0, a pair as long as its parts.
std::string text(const Picture& picture) {
  const PipelineShape& shape = picture.shape;
  const bool splits = splits_backward(shape.schedule);
  const auto stages = timeline(shape, equal_times(shape, 1, splits ? 1 : 2, 0, splits ? 1 : 0).view());
  std::string out = fmt::format("  \"{}\": {{\"title\": \"{}\", \"chunks\": {}, \"micro_batches\": {}, \"stages\": [\n",
                                picture.name, picture.title, shape.chunks, shape.micro_batches);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::vector<std::string> tasks;
    for (const SolvedTask& solved : stages[i]) { tasks.push_back(text(solved, splits)); }
    out += fmt::format("    [{}]{}\n", fmt::join(tasks, ", "), i + 1 < stages.size() ? "," : "");
  }
  return out + "  ]}";
}

std::string all_pictures() {
  const std::vector<Picture> pictures = {
      {"gpipe", "GPipe", {ScheduleKind::gpipe, 4, 1, 8}},
      {"one_f_one_b", "1F1B", {ScheduleKind::one_f_one_b, 4, 1, 8}},
      {"interleaved", "Interleaved 1F1B, 2 chunks per stage", {ScheduleKind::interleaved, 4, 2, 8}},
      {"zero_bubble", "Zero bubble (ZB-H1)", {ScheduleKind::zero_bubble, 4, 1, 8}},
      {"dualpipe", "DualPipe", {ScheduleKind::dualpipe, 8, 2, 20}},
  };
  std::string out = "{\n";
  for (const Picture& picture : pictures) { out += text(picture) + (&picture == &pictures.back() ? "\n" : ",\n"); }
  return out + "}\n";
}

// To update the file: ORRERY_UPDATE=1 parallel_test --gtest_filter='PipelinePicture.*'
TEST(PipelinePicture, pictures_show_what_the_solver_says) {
  const std::string expected = all_pictures();
  if (std::getenv("ORRERY_UPDATE") != nullptr) { std::ofstream(kFile) << expected; }
  std::ostringstream found;
  found << std::ifstream(kFile).rdbuf();
  EXPECT_TRUE(found.str() == expected) << kFile << " is out of date; docs/models/pipeline.md says how to write it anew";
}

}  // namespace
}  // namespace orrery::parallel::pipeline_picture_test
