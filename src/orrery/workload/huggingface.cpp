#include "orrery/workload/huggingface.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload {
namespace {

using config::Node;
using config::Record;
using huggingface::Count;
using huggingface::Family;
using huggingface::Fields;
using huggingface::SizeKeys;

void add_size_keys(Record<Fields>& record, const SizeKeys& keys) {
  const auto required = [&](std::string_view key, Count Fields::* member, const char* doc) {
    if (!key.empty()) { record.required(std::string(key), member, doc, huggingface::kFrom1); }
  };
  const auto optional = [&](std::string_view key, std::optional<Count> Fields::* member, const char* doc) {
    if (!key.empty()) { record.optional(std::string(key), member, doc, huggingface::kSize); }
  };
  required(keys.layers, &Fields::layers, "transformer layers");
  required(keys.hidden, &Fields::hidden, "width of the residual stream");
  required(keys.heads, &Fields::heads, "query heads");
  required(keys.vocab, &Fields::vocab, "rows of the embedding table");
  required(keys.max_seq, &Fields::max_seq, "longest sequence");
  if (keys.ffn_has_default) {
    optional(keys.ffn, &Fields::ffn, "inner width of the MLP; null = 4 x hidden");
  } else {
    record.required(std::string(keys.ffn), &Fields::ffn, "inner width of the MLP", huggingface::kSize);
  }
  optional(keys.kv_heads, &Fields::kv_heads, "key-value heads; null = query heads");
  optional(keys.head_dim, &Fields::head_dim, "width of a head; null = hidden / heads");
}

// The part of the file that describes the model, under the record's names. The library accepts some keys under two
// names (the second is used if the first is absent), and some sizes may be missing.
Node prepared(const Node& original, const Family& family) {
  const Node* part = family.nested.empty() ? nullptr : original.find(family.nested);
  Node node = part != nullptr && part->kind == config::Kind::mapping ? *part : original;
  for (const auto& alias : family.aliases) {
    if (node.find(alias.key) != nullptr) { continue; }
    for (auto& member : node.members) {
      if (member.key == alias.other) { member.key = alias.key; }
    }
  }
  for (const auto& fallback : family.fallbacks) {
    if (node.find(fallback.key) != nullptr) { continue; }
    config::add(node, std::string(fallback.key), config::integer_node(fallback.value));
  }
  return node;
}

std::optional<Activation> activation_of(std::string_view name) {
  if (name.starts_with("gated-")) { name.remove_prefix(6); }
  if (name.find("gelu") != std::string_view::npos) { return Activation::gelu; }  // gelu_new, gelu_fast, quick_gelu, ...
  if (name == "silu" || name == "swish") { return Activation::silu; }
  if (name == "relu") { return Activation::relu; }
  if (name == "relu2" || name == "squared_relu") { return Activation::squared_relu; }
  return std::nullopt;
}

Model shaped(const Fields& fields, const Family& family, Activation activation) {
  Model model;
  model.layers = fields.layers;
  model.hidden = fields.hidden;
  model.heads = fields.heads;
  model.kv_heads = fields.kv_heads.value_or(0);
  model.head_dim = fields.head_dim.value_or(0);
  model.ffn = fields.ffn.value_or(family.keys.ffn_has_default ? 4 * fields.hidden : 0);
  model.vocab = fields.vocab;
  model.max_seq = fields.max_seq;
  model.tied_embeddings = fields.tied;
  model.dropout = std::max(fields.hidden_dropout, fields.attention_dropout);
  model.activation = activation;
  family.shape(fields, model);
  return model;
}

std::string description_of(const Fields& fields, const Family& family) {
  const std::string note = family.note == nullptr ? std::string() : family.note(fields);
  return fmt::format("Hugging Face configuration of type {}{}{}", family.model_type, note.empty() ? "" : ", ", note);
}

// The file's key for a member of Model, so that errors name the key that the user wrote.
std::string_view key_of(std::string_view field, const SizeKeys& keys) {
  if (field == "layers") { return keys.layers; }
  if (field == "hidden") { return keys.hidden; }
  if (field == "heads") { return keys.heads; }
  if (field == "kv_heads") { return keys.kv_heads; }
  if (field == "head_dim") { return keys.head_dim; }
  if (field == "ffn") { return keys.ffn; }
  if (field == "vocab") { return keys.vocab; }
  if (field == "max_seq") { return keys.max_seq; }
  if (field == "sliding_window") { return field; }
  if (field == "experts.active") { return "num_experts_per_tok"; }
  if (field == "experts.groups") { return "n_group"; }
  if (field == "experts.active_groups") { return "topk_group"; }
  if (field == "experts.first_dense") { return "first_k_dense_replace"; }
  if (field == "vision.patch") { return "patch_size"; }
  return {};
}

Place place_of(const Node& node, std::string_view key) {
  const Node* value = key.empty() ? nullptr : node.find(key);
  return value == nullptr ? node.place : value->place;
}

Result<Model> read_family(const Node& original, const Family& family, const std::string& name) {
  auto record = family.record();
  record.foreign();
  add_size_keys(record, family.keys);
  const Node node = prepared(original, family);
  // Reading over defaults does not report missing keys; reading without defaults does.
  if (auto strict = record.read(node); !strict) { return tl::make_unexpected(strict.error()); }
  ORRERY_TRY(fields, record.read_over(family.defaults(), node));
  if (const auto why = family.unsupported(fields); !why.empty()) { return fail(node.place, why); }
  const auto activation = activation_of(fields.activation);
  if (!activation) {
    return fail(place_of(node, family.activation_key),
                fmt::format("unknown activation {}; valid: gelu and its variants, relu, relu2, silu",
                            quote(fields.activation)));
  }
  Model model = shaped(fields, family, *activation);
  if (family.finish != nullptr) { family.finish(node, model); }
  if (model.has_experts()) { model.quantized_4_bit = family.quantized_4_bit; }
  const Node* vision = family.tower == nullptr ? nullptr : original.find("vision_config");
  if (vision != nullptr && vision->kind == config::Kind::mapping) {
    ORRERY_TRY(tower, family.tower(*vision, original, model.hidden));
    model.tower = std::move(tower);
  }
  if (const auto wrong = inconsistency(model)) {
    return fail(place_of(node, key_of(wrong->field, family.keys)), wrong->message);
  }
  model.name = name;
  model.description = description_of(fields, family);
  model = completed(std::move(model));
  huggingface::read_details(node, model);
  model.checkpoint = huggingface::checkpoint_of(original);
  if (model.checkpoint.method.empty()) { model.checkpoint = huggingface::checkpoint_of(node); }
  if (const auto unread = huggingface::unread_keys(original, family); !unread.empty()) {
    model.warnings.push_back(fmt::format("{}: {} not known in a configuration of type {} and ignored: {}",
                                         original.place.file, unread.size() == 1 ? "a key is" : "keys are",
                                         family.model_type, huggingface::text_of(unread)));
  }
  return model;
}

// "; its sizes are those of llama: ..."; empty if no family has its sizes.
std::string reads_as(const Node& config) {
  const std::string closest = huggingface::closest_family(config);
  return closest.empty() ? std::string() : "; " + closest;
}

std::string unknown_type(const Node& config, const std::string& type) {
  const auto planned = huggingface::planned_model_types();
  const auto known = huggingface_model_types();
  if (std::find(planned.begin(), planned.end(), type) != planned.end()) {
    return fmt::format("model_type {} is not built yet{}; valid: {}", quote(type), reads_as(config), join(known, ", "));
  }
  const auto near = nearest(type, known);
  return fmt::format("unknown model_type {}{}; {}valid: {}", quote(type), reads_as(config),
                     near ? fmt::format("did you mean {}? ", quote(*near)) : std::string(), join(known, ", "));
}

}  // namespace

std::vector<std::string> huggingface_model_types() {
  std::vector<std::string> types;
  for (const auto& family : huggingface::families()) { types.emplace_back(family.model_type); }
  return types;
}

Result<Model> model_from_huggingface(const Node& config, const std::string& name, const std::string& as) {
  const auto family_named = [](const std::string& type) {
    const auto families = huggingface::families();
    return std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.model_type == type; });
  };
  const auto none = huggingface::families().end();
  if (!as.empty()) {
    const auto family = family_named(as);
    if (family != none) { return read_family(config, *family, name); }
    const auto known = huggingface_model_types();
    const auto near = nearest(as, known);
    return fail(Place{"", 0, 0, "--as"},
                fmt::format("{} is not a known model_type; {}valid: {}", quote(as),
                            near ? fmt::format("did you mean {}? ", quote(*near)) : std::string(), join(known, ", ")));
  }
  const Node* type = config.find("model_type");
  if (type == nullptr) {
    return fail(config.place,
                fmt::format("required key \"model_type\" of a Hugging Face configuration is missing{}; valid: {}",
                            reads_as(config), join(huggingface_model_types(), ", ")));
  }
  if (type->kind != config::Kind::text) {
    return fail(type->place,
                fmt::format("model_type must be a string, one of {}", join(huggingface_model_types(), ", ")));
  }
  const auto family = family_named(type->scalar);
  if (family != none) { return read_family(config, *family, name); }
  return fail(type->place, unknown_type(config, type->scalar));
}

}  // namespace orrery::workload
