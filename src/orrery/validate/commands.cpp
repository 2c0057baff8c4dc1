#include "orrery/validate/commands.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/validate/columns.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEstimate = "estimate", kPlan = "plan", kAttention = "attn", kTop = "--top",
                           kBurst = "burst";
constexpr std::size_t kAttentionWords = 4, kMostAttentionWords = 6;

bool is_switch(const config::FieldInfo& field) { return field.type.text == "true or false"; }

std::string flag_of(const std::string& field) {
  std::string flag = "--" + field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// The file of a value that names one: "@name", or a relative path to a file that exists.
std::string file_meant(const std::string& value, const fs::path& table) {
  if (value.starts_with('@')) { return (table.parent_path() / table.stem() / (value.substr(1) + ".yaml")).string(); }
  const fs::path path = table.parent_path() / value;
  std::error_code error;
  const bool is_path = value.find('/') != std::string::npos || fs::path(value).has_extension();
  return is_path && fs::is_regular_file(path, error) ? path.string() : value;
}

class FlagReader {
 public:
  FlagReader(const std::vector<std::string>& words, fs::path table) : words_(words), table_(std::move(table)) {
    for (const auto& field : estimate::request_record().fields()) { flags_.push_back(flag_of(field.name)); }
  }

  Result<config::Node> fields() {
    config::Node fields = config::mapping_node();
    while (at_ < words_.size()) {
      ORRERY_TRY(done, read_flag(fields));
      (void)done;
    }
    return fields;
  }

 private:
  Result<std::monostate> read_flag(config::Node& fields) {
    std::string flag = words_[at_++];
    if (words_.front() == kPlan && flag == kTop && at_ < words_.size()) {  // how many plans are printed
      ++at_;
      return std::monostate{};
    }
    std::optional<std::string> value;
    if (const std::size_t equal = flag.find('='); equal != std::string::npos) {
      value = flag.substr(equal + 1);
      flag.resize(equal);
    }
    for (const auto& field : estimate::request_record().fields()) {
      const std::string name = flag_of(field.name);
      if (flag == name && !is_switch(field) && !value) {
        if (at_ == words_.size()) { return fail(place(flag), "needs a value"); }
        value = words_[at_++];
      }
      const bool negated = is_switch(field) && flag == "--no-" + name.substr(2);
      if (flag != name && !negated) { continue; }
      if (is_switch(field)) { value = negated ? "false" : "true"; }
      config::add(fields, field.name, config::plain_node(file_meant(*value, table_), place(flag)));
      return std::monostate{};
    }
    const auto near = nearest(flag, flags_);
    return fail(place(flag), near ? fmt::format("unknown flag of estimate; did you mean {}?", *near)
                                  : std::string("unknown flag of estimate"));
  }

  static Place place(const std::string& flag) { return {{}, 0, 0, flag}; }

  const std::vector<std::string>& words_;
  fs::path table_;
  std::vector<std::string> flags_;
  std::size_t at_ = 1;  // after the command
};

std::string first_problem(const Failure& failure) {
  const Diagnostic& first = failure.diagnostics.front();
  return first.place.path.empty() ? first.message : fmt::format("{}: {}", first.place.path, first.message);
}

// The words of a row's command line, without the program's name.
std::vector<std::string> command_of(const CommandRow& row) {
  auto words = words_of(row.args);
  if (!words.empty() && words.front() == "orrery") { words.erase(words.begin()); }
  return words;
}

// Whether the row is an attention core that was timed for a few milliseconds.
bool is_burst(const std::vector<std::string>& words) { return words.front() == kAttention && words.back() == kBurst; }

// The fields of "attn MODEL CLUSTER SEQ [BATCH [STACK]] [burst]".
Result<config::Node> attention_fields(std::vector<std::string> words, const std::string& table) {
  if (is_burst(words)) { words.pop_back(); }
  if (words.size() < kAttentionWords || words.size() > kMostAttentionWords) {
    return fail(
        "attn: takes a model, a cluster, a sequence length and, if not the usual, a batch and a stack; then \"burst\" "
        "if "
        "the kernel was timed for milliseconds only");
  }
  config::Node fields = config::mapping_node();
  const auto add = [&](const char* field, const std::string& value) {
    config::add(fields, field, config::plain_node(value, Place{{}, 0, 0, fmt::format("attn {}", field)}));
  };
  add("model", file_meant(words[1], table));
  add("cluster", file_meant(words[2], table));
  add("seq", words[3]);
  add("devices", "1");
  const std::string batch = words.size() > kAttentionWords ? words[kAttentionWords] : "1";
  for (const char* sequences : {"global_batch", "micro_batch"}) { add(sequences, batch); }
  if (words.size() == kMostAttentionWords) { add("stack", file_meant(words.back(), table)); }
  add("recompute", "none");
  return fields;
}

// The accelerator before its power limit slows it: attention_efficiency is that of long jobs.
void raise_clock(hardware::Accelerator& accelerator) {
  accelerator.attention_efficiency =
      std::min(1.0, accelerator.attention_efficiency * (1.0 + accelerator.power_slowdown));
}

// What the command leaves open: searched by `plan`, else chosen as `estimate` chooses it.
Result<parallel::Plan> plan_of(const CommandRow& row, const estimate::Request& request, const CommandScenario& made,
                               const Parts& parts) {
  if (command_of(row).front() != kPlan) {
    ORRERY_TRY(resolved, estimate::resolve(request, made.model, made.cluster, made.stack));
    return resolved.plan;
  }
  if (!parts.best_plan) { return fail("plan: this program cannot search"); }
  return parts.best_plan(request);
}

Result<CommandScenario> scenario(const CommandRow& row, const Parts& parts) {
  const std::string& data_directory = parts.data_directory;
  ORRERY_TRY(request, request_of(row));
  if (auto found = estimate::problems(request); !found.empty()) {
    return tl::make_unexpected(Failure{{found.front()}});
  }
  if (request.semantics != estimate::Semantics::physical) {
    return fail(Place{{}, 0, 0, "--semantics"}, "only physical jobs are validated");
  }
  const hardware::Catalogue catalogue(data_directory);
  CommandScenario made;
  ORRERY_TRY(model, workload::load_model(data_directory, request.model));
  ORRERY_TRY(cluster, catalogue.cluster(request.cluster, request.devices.value_or(0)));
  ORRERY_TRY(stack, catalogue.stack_on(estimate::stack_name(request, model, cluster.accelerator), cluster.accelerator));
  if (auto found = estimate::stack_problems(request, model, cluster.accelerator, stack); !found.empty()) {
    return tl::make_unexpected(Failure{{found.front()}});
  }
  made.stack = estimate::stack_of(request, std::move(stack));
  made.job = estimate::job_of(request, model, made.stack);
  if (auto found = parallel::problems(model, made.job); !found.empty()) {
    return tl::make_unexpected(Failure{{found.front()}});
  }
  made.model = std::move(model);
  made.cluster = std::move(cluster);
  const auto words = command_of(row);
  if (is_burst(words)) { raise_clock(made.cluster.accelerator); }
  ORRERY_TRY(plan, plan_of(row, request, made, parts));
  made.plan = std::move(plan);
  made.attention_only = words.front() == kAttention;
  return made;
}

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  char quote = 0;
  bool in_word = false;
  for (const char c : line) {
    const bool is_quote = quote == 0 ? c == '"' || c == '\'' : c == quote;
    if (quote == 0 && (c == ' ' || c == '\t')) {
      in_word = false;
      continue;
    }
    if (!in_word) { words.emplace_back(); }
    in_word = true;
    if (is_quote) {
      quote = quote == 0 ? c : char{0};
    } else {
      words.back() += c;
    }
  }
  return words;
}

Result<estimate::Request> request_of(const CommandRow& row) {
  const auto words = command_of(row);
  const std::string command = words.empty() ? "" : words.front();
  if (command == kAttention) {
    ORRERY_TRY(fields, attention_fields(words, row.table));
    return estimate::request_record().read_over(estimate::Request{}, fields);
  }
  if (command != kEstimate && command != kPlan) {
    return fail(fmt::format("not a row of \"estimate\", \"plan\", \"gemm\" or \"attn\": {}", quote(command)));
  }
  ORRERY_TRY(fields, FlagReader(words, row.table).fields());
  return estimate::request_record().read_over(estimate::Request{}, fields);
}

std::optional<KernelRow> kernel_of(const CommandRow& row) {
  const auto words = words_of(row.args);
  if (words.size() != 6 || words[0] != "gemm") { return std::nullopt; }
  KernelRow kernel;
  kernel.family = row.family;
  kernel.op = "gemm";
  kernel.gpu_type = words[1];
  kernel.dtype = words[2];
  for (const auto& [member, word] : {std::pair{&KernelRow::m, 3}, {&KernelRow::n, 4}, {&KernelRow::k, 5}}) {
    const std::string wrong = store(kernel.*member, words[static_cast<std::size_t>(word)], 1.0);
    if (!wrong.empty()) {
      kernel.unreadable = fmt::format("{} {}", quote(words[static_cast<std::size_t>(word)]), wrong);
    }
  }
  return kernel;
}

Skippable<CommandScenario> scenario_of(const CommandRow& row, const Parts& parts) {
  auto made = scenario(row, parts);
  if (!made) { return skip(first_problem(made.error())); }
  return std::move(*made);
}

}  // namespace orrery::validate
