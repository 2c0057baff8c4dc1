#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/trace/text_words.hpp"
#include "orrery/trace/text_workload.hpp"
#include "orrery/trace/utf8.hpp"

namespace orrery::trace {

using graph::CollectiveType;

namespace {

constexpr std::array kParallelisms = {
    std::pair{Parallelism::data, "DATA"},
    std::pair{Parallelism::model, "MODEL"},
    std::pair{Parallelism::hybrid_data_model, "HYBRID_DATA_MODEL"},
    std::pair{Parallelism::hybrid_model_data, "HYBRID_MODEL_DATA"},
    std::pair{Parallelism::hybrid_transformer, "HYBRID_TRANSFORMER"},
    std::pair{Parallelism::hybrid_transformer_fwd_in_bckwd, "HYBRID_TRANSFORMER_FWD_IN_BCKWD"},
    std::pair{Parallelism::hybrid_customized, "HYBRID_CUSTOMIZED"},
    std::pair{Parallelism::hybrid_dlrm, "HYBRID_DLRM"},
    std::pair{Parallelism::hybrid_dlrm_enhanced, "HYBRID_DLRM_ENHANCED"},
    std::pair{Parallelism::micro, "MICRO"},
    std::pair{Parallelism::distributed_inference, "DISTRIBUTED_INFERENCE"},
};

constexpr std::array kCollectives = {
    std::pair{CollectiveType::all_reduce, "ALLREDUCE"},
    std::pair{CollectiveType::all_gather, "ALLGATHER"},
    std::pair{CollectiveType::reduce_scatter, "REDUCESCATTER"},
    std::pair{CollectiveType::all_to_all, "ALLTOALL"},
};

// Columns of a layer's line.
constexpr std::array kColumns = {"the name",
                                 "the reserved number (-1)",
                                 "the forward time",
                                 "the forward collective",
                                 "the forward collective's bytes",
                                 "the input gradient's time",
                                 "the input gradient's collective",
                                 "the input gradient's collective's bytes",
                                 "the weight gradient's time",
                                 "the weight gradient's collective",
                                 "the weight gradient's collective's bytes",
                                 "the update time",
                                 "the layer's kind of parallelism"};
constexpr std::size_t kPlainColumns = kColumns.size() - 1;

constexpr std::string_view kModelGroup = "model_parallel_NPU_group:";
constexpr std::string_view kCheckpoints = "checkpoints:";
constexpr std::string_view kInitiators = "checkpoint_initiates:";

template <class Table>
auto find_in(const Table& table, std::string_view name) -> std::optional<decltype(table[0].first)> {
  for (const auto& [value, known] : table) {
    if (name == known) { return value; }
  }
  return std::nullopt;
}

bool is_transformer(Parallelism parallelism) {
  return parallelism == Parallelism::hybrid_transformer || parallelism == Parallelism::hybrid_transformer_fwd_in_bckwd;
}

bool is_dlrm(Parallelism parallelism) {
  return parallelism == Parallelism::hybrid_dlrm || parallelism == Parallelism::hybrid_dlrm_enhanced;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : lines_(lines_of(text)) { made_.file = name; }

  Result<TextWorkload> parse() {
    if (lines_.empty()) {
      add_error(0, {}, "is empty; the first line of a workload is its kind of parallelism");
    } else if (header()) {
      const auto count = layer_count();
      for (std::size_t i = 2; i < lines_.size(); ++i) { layer(lines_[i]); }
      if (count) { check_count(*count); }
      check_recomputation();
      if (is_dlrm(made_.parallelism)) { check_bottom(); }
    }
    if (!failure_.diagnostics.empty()) { return tl::make_unexpected(std::move(failure_)); }
    return std::move(made_);
  }

 private:
  void add_error(int line, const Word& word, std::string message) {
    failure_.diagnostics.push_back({Place{made_.file, line, word.column, {}}, std::move(message)});
  }

  template <class Table>
  void add_unknown_word(int line, const Word& word, std::string_view what, const Table& table,
                        std::vector<std::string> more) {
    for (const auto& [value, known] : table) { more.emplace_back(known); }
    const auto near = nearest(word.text, more);
    add_error(
        line, word,
        fmt::format("{} is not a {}; {}", quote(word.text), what,
                    near ? fmt::format("did you mean \"{}\"?", *near) : fmt::format("valid: {}", join(more, ", "))));
  }

  // A natural number up to the maximum of a signed 64-bit integer, the type that simulators use.
  std::optional<std::uint64_t> natural(int line, const Word& word, std::string_view what) {
    std::uint64_t value = 0;
    const std::string digits(word.text);
    const char* const end = digits.c_str() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.c_str(), end, value);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (error == std::errc::result_out_of_range || (error == std::errc() && stopped == end && value > kMost)) {
      add_error(line, word, fmt::format("{}: {} is too large", what, quote(word.text)));
      return std::nullopt;
    }
    if (error != std::errc() || stopped != end) {
      add_error(line, word, fmt::format("{}: {} is not a whole number of at least 0", what, quote(word.text)));
      return std::nullopt;
    }
    return value;
  }

  bool header() {
    const WordLine& line = lines_.front();
    const auto kind = find_in(kParallelisms, line.words[0].text);
    if (!kind) {
      add_unknown_word(line.number, line.words[0], "kind of parallelism", kParallelisms, {});
      return false;
    }
    made_.parallelism = *kind;
    made_.line = line.number;
    std::size_t at = 1;
    if (is_dlrm(*kind)) { bottom(line, at); }
    while (at < line.words.size()) { header_entry(line, at); }
    return true;
  }

  void bottom(const WordLine& line, std::size_t& at) {
    constexpr std::string_view kWhat = "the number of the last bottom layer";
    if (at == line.words.size()) {
      add_error(line.number, {}, fmt::format("{} is missing after {}", kWhat, name_of(made_.parallelism)));
      return;
    }
    made_.last_bottom_layer = natural(line.number, line.words[at++], kWhat);
  }

  void header_entry(const WordLine& line, std::size_t& at) {
    const Word& key = line.words[at++];
    std::vector<std::string> known;
    if (is_transformer(made_.parallelism)) { known.emplace_back(kModelGroup); }
    if (made_.parallelism == Parallelism::hybrid_transformer_fwd_in_bckwd) {
      known.insert(known.end(), {std::string(kCheckpoints), std::string(kInitiators)});
    }
    if (std::find(known.begin(), known.end(), key.text) == known.end()) {
      unknown_entry(line, key, known);
      at = line.words.size();
      return;
    }
    if (at == line.words.size()) {
      add_error(line.number, key, fmt::format("{} has no number after it", key.text));
    } else if (key.text == kModelGroup) {
      made_.model_group = natural(line.number, line.words[at], key.text);
      if (made_.model_group == 0) { add_error(line.number, line.words[at], "a group must have at least one rank"); }
      ++at;
    } else {
      (key.text == kCheckpoints ? made_.checkpoints : made_.initiators) = layer_list(line, at, key);
    }
  }

  void unknown_entry(const WordLine& line, const Word& key, const std::vector<std::string>& known) {
    static constexpr std::array kDialect = {"ep:", "pp:", "vpp:", "ga:", "all_gpus:", "pp_comm:", "pp_comm"};
    if (std::find(kDialect.begin(), kDialect.end(), key.text) != kDialect.end()) {
      add_error(line.number, key,
                fmt::format("{} belongs to a later dialect (SimAI), which orrery does not read", key.text));
      return;
    }
    const auto near = nearest(key.text, known);
    add_error(line.number, key,
              fmt::format("{} is not valid after {}; {}", quote(key.text), name_of(made_.parallelism),
                          known.empty() ? "nothing is"
                          : near        ? fmt::format("did you mean \"{}\"?", *near)
                                        : "valid: " + join(known, ", ")));
  }

  // A count, then as many numbers of layers.
  std::vector<std::uint64_t> layer_list(const WordLine& line, std::size_t& at, const Word& key) {
    std::vector<std::uint64_t> layers;
    const auto count = natural(line.number, line.words[at++], key.text);
    for (std::uint64_t i = 0; count && i < *count; ++i) {
      if (at == line.words.size()) {
        add_error(line.number, key, fmt::format("{} declares {} layers but lists {}", key.text, *count, i));
        break;
      }
      if (const auto layer = natural(line.number, line.words[at++], key.text)) { layers.push_back(*layer); }
    }
    return layers;
  }

  std::optional<std::uint64_t> layer_count() {
    if (lines_.size() < 2) {
      add_error(made_.line, {}, "the file ends after its first line; expected the number of layers");
      return std::nullopt;
    }
    const WordLine& line = lines_[1];
    if (line.words.size() > 1) {
      add_error(line.number, line.words[1], "unexpected text after the number of layers");
      return std::nullopt;
    }
    return natural(line.number, line.words[0], "the number of layers");
  }

  void check_count(std::uint64_t count) {
    const std::size_t found = lines_.size() - 2;
    if (count == 0) { add_error(lines_[1].number, lines_[1].words[0], "a workload must have at least one layer"); }
    if (found < count) {
      add_error(lines_[1].number, lines_[1].words[0],
                fmt::format("{} layers are declared, but {} follow", count, found));
    } else if (found > count) {
      const WordLine& extra = lines_[2 + static_cast<std::size_t>(count)];
      add_error(extra.number, {}, fmt::format("line {} declares {} layers; this is one more", lines_[1].number, count));
    }
  }

  void layer(const WordLine& line) {
    const bool customized = made_.parallelism == Parallelism::hybrid_customized;
    const std::size_t columns = kPlainColumns + (customized ? 1 : 0);
    if (line.words.size() < columns) {
      add_error(line.number, {},
                fmt::format("{} is missing: a layer of {} has {} columns, this one {}", kColumns.at(line.words.size()),
                            name_of(made_.parallelism), columns, line.words.size()));
      return;
    }
    if (line.words.size() > columns) {
      add_error(line.number, line.words[columns],
                fmt::format("{} is one column too many: a layer of {} has {}", quote(line.words[columns].text),
                            name_of(made_.parallelism), columns));
      return;
    }
    TextLayer layer;
    layer.name = line.words[0].text;
    layer.line = line.number;
    if (!is_utf8(layer.name)) { add_error(line.number, line.words[0], "the name is not UTF-8"); }
    reserved(line);
    layer.forward = pass(line, 2);
    layer.input_gradient = pass(line, 5);
    layer.weight_gradient = pass(line, 8);
    layer.update_cycles = natural(line.number, line.words[11], kColumns[11]).value_or(0);
    if (customized) { layer.parallelism = own_kind(line); }
    made_.layers.push_back(std::move(layer));
  }

  // Any whole number; it has no meaning.
  void reserved(const WordLine& line) {
    const Word& word = line.words[1];
    std::string_view digits = word.text;
    if (digits.starts_with('-')) { digits.remove_prefix(1); }
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      add_error(line.number, word, fmt::format("{}: {} is not a whole number", kColumns[1], quote(word.text)));
    }
  }

  TextLayer::Pass pass(const WordLine& line, std::size_t at) {
    TextLayer::Pass pass;
    pass.cycles = natural(line.number, line.words[at], kColumns.at(at)).value_or(0);
    pass.bytes = natural(line.number, line.words[at + 2], kColumns.at(at + 2)).value_or(0);
    const Word& word = line.words[at + 1];
    if (word.text == "NONE") { return pass; }
    pass.collective = find_in(kCollectives, word.text);
    if (pass.collective) { return pass; }
    if (word.text == "ALLREDUCEALLTOALL") {
      add_error(line.number, word,
                "ALLREDUCEALLTOALL is not supported: the file does not give the size of its all-to-all");
    } else {
      add_unknown_word(line.number, word, "collective", kCollectives, {"NONE"});
    }
    return pass;
  }

  std::optional<Parallelism> own_kind(const WordLine& line) {
    const Word& word = line.words[kPlainColumns];
    const auto kind = find_in(kParallelisms, word.text);
    if (!kind) { add_unknown_word(line.number, word, "kind of parallelism", kParallelisms, {}); }
    if (kind == Parallelism::hybrid_customized) {
      add_error(line.number, word, "HYBRID_CUSTOMIZED is valid for a whole workload only, not for a layer");
    }
    return kind;
  }

  void check_bottom() {
    if (!made_.last_bottom_layer || *made_.last_bottom_layer < made_.layers.size()) { return; }
    add_error(made_.line, {},
              fmt::format("the last bottom layer is number {}, but layers have numbers 0 to "
                          "{}",
                          *made_.last_bottom_layer, made_.layers.size() - 1));
  }

  void check_recomputation() {
    const std::size_t count = made_.layers.size();
    for (const auto* list : {&made_.checkpoints, &made_.initiators}) {
      for (const std::uint64_t layer : *list) {
        if (layer >= count) {
          add_error(made_.line, {},
                    fmt::format("{} names layer {}, but layers have numbers 0 to {}",
                                list == &made_.checkpoints ? kCheckpoints : kInitiators, layer,
                                static_cast<std::int64_t>(count) - 1));
        }
      }
    }
    for (const std::uint64_t initiator : made_.initiators) {
      if (initiator < count) { check_initiator(initiator); }
    }
  }

  // The forward pass is recomputed from the nearest checkpoint below to the layer before the initiator. The simulator
  // of the format stops at the first initiator that it finds and continues from there, which would skip layers.
  void check_initiator(std::uint64_t initiator) {
    std::optional<std::uint64_t> from;
    for (const std::uint64_t checkpoint : made_.checkpoints) {
      if (checkpoint <= initiator && (!from || checkpoint > *from)) { from = checkpoint; }
    }
    if (!from || *from == initiator) {
      add_error(made_.line, {},
                fmt::format("layer {} initiates a forward pass in the backward pass, but {}", initiator,
                            from ? "is a checkpoint itself" : "no layer before it is a checkpoint"));
      return;
    }
    for (const std::uint64_t other : made_.initiators) {
      if (other > *from && other < initiator) {
        add_error(made_.line, {},
                  fmt::format("layer {} initiates a forward pass from checkpoint {}, and so does layer "
                              "{} between them: there must be a checkpoint between",
                              initiator, *from, other));
      }
    }
  }

  std::vector<WordLine> lines_;
  TextWorkload made_;
  Failure failure_;
};

}  // namespace

std::string_view name_of(Parallelism parallelism) {
  for (const auto& [value, name] : kParallelisms) {
    if (value == parallelism) { return name; }
  }
  return "UNKNOWN";
}

Result<TextWorkload> parse_text_workload(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

Result<TextWorkload> read_text_workload(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf() || file.peek() == std::ifstream::traits_type::eof())) {
    return fail(Place{path, 0, 0, {}}, "cannot be read");
  }
  return parse_text_workload(text.str(), path);
}

bool is_text_workload(std::string_view text) {
  const auto words = words_of(text.substr(0, text.find('\n')));
  return !words.empty() && find_in(kParallelisms, words[0].text).has_value();
}

}  // namespace orrery::trace
