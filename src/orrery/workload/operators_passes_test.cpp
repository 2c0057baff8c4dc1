// Inference: prefill, a generated token, and the KV cache.
//
// Everywhere: b = 2 sequences; h = 8, two query heads and one key-value head of 4; two-byte elements.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_passes_test {
namespace {

using hardware::Precision;
using hardware::Stack;

Model tiny_llama() {
  Model model = llama(8, 2, 1, 16);
  model.vocab = 128;
  return model;
}

Slice prompt(std::int64_t s) {
  Slice part = slice(2, s);
  part.pass = Pass::prefill;
  return part;
}

Slice step(std::int64_t context) {
  Slice part = slice(2, 1);
  part.pass = Pass::decode;
  part.context = context;
  return part;
}

void expect_forward_only(const std::vector<Operator>& list) {
  for (const auto& op : list) {
    EXPECT_EQ(op.saved, Bytes(0)) << op.name;
    EXPECT_EQ(op.backward_input, Kernel{}) << op.name;
    EXPECT_EQ(op.backward_weight, Kernel{}) << op.name;
  }
}

TEST(Passes, inference_keeps_no_activations_and_has_no_backward) {
  Model model = gpt(1, 8, 2, 128);
  for (const Slice& part : {prompt(4), step(4)}) {
    expect_forward_only(embedding_operators(model, Stack{}, part));
    expect_forward_only(layer_operators(model, Stack{}, part));
    expect_forward_only(head_operators(model, Stack{}, part));
    EXPECT_EQ(parameters(layer_operators(model, Stack{}, part)), static_cast<double>(layer_parameters(model, {})));
  }
  EXPECT_THAT(names(embedding_operators(model, Stack{}, prompt(4))),
              testing::Not(testing::Contains("embedding.dropout")));
}

// As in training, less the log-sum-exp.
TEST(Passes, prompt_computes_a_training_forward) {
  const auto list = layer_operators(tiny_llama(), Stack{}, prompt(4));
  expect_kernel(find(list, "attention.flash").forward, {512, 2 * 128 + 2 * 64}, "flash");
  expect_kernel(find(list, "attention.qkv").forward, {2 * 8 * 16 * 8, (64 + 128 + 128) * 2}, "qkv");
}

// 2 rows, not 8; the largest logit and its index, 8 B each.
TEST(Passes, head_of_a_prompt_sees_the_last_positions) {
  const auto list = head_operators(tiny_llama(), Stack{}, prompt(4));
  EXPECT_THAT(names(list), testing::ElementsAre("head.norm", "head.enter", "head.logits", "sample", "sample.reduce"));
  expect_kernel(find(list, "head.logits").forward, {2 * 2 * 128 * 8, (16 + 1024 + 256) * 2}, "logits");
  expect_kernel(find(list, "sample").forward, {0, 512}, "sample");
  EXPECT_EQ(list.back().boundary_bytes, Bytes(16));
  const auto later = head_operators(tiny_llama(), Stack{}, step(9));
  EXPECT_EQ(find(later, "head.logits").forward, find(list, "head.logits").forward);
}

// 4 rows over 7 keys, 4 + 4 deep; the cache of 2 x 7 x 8 elements is read once for both heads, queries and results 32.
TEST(Passes, generated_token_reads_the_cache_once) {
  const auto list = layer_operators(tiny_llama(), Stack{}, step(7));
  const Operator& core = find(list, "attention.decode");
  expect_kernel(core.forward, {2 * 4 * 8 * 7, (112 + 32) * 2}, "decode");
  expect_shape(core.forward, 2, 2, 7, 4);
  EXPECT_EQ(core.growth, (Growth{1, Flops(64), Bytes(32), 0}));
  expect_kernel(find(list, "attention.qkv").forward, {2 * 2 * 16 * 8, (16 + 128 + 32) * 2}, "qkv");
}

// Whatever kernel the stack trains with: one position's scores are never written to memory.
TEST(Passes, generated_token_has_a_fused_core_whatever_the_stack) {
  EXPECT_EQ(find(layer_operators(tiny_llama(), megatron_2021(), step(7)), "attention.decode").forward.n, 7);
}

// A stack whose attention kernels rotate has no such kernel for requests; one that writes a prompt to the cache rotates
// it in place. Training has it.
TEST(Passes, rotary_positions_are_part_of_a_fused_core) {
  Stack fused;
  fused.fusion.decode_rotary = true;
  for (const Slice& part : {prompt(4), step(7)}) {
    const auto without = names(layer_operators(tiny_llama(), fused, part));
    auto with = names(layer_operators(tiny_llama(), Stack{}, part));
    const auto rotary = std::find(with.begin(), with.end(), "attention.rotary");
    ASSERT_NE(rotary, with.end());
    if (part.pass == Pass::prefill) {
      *rotary = "attention.cache";
    } else {
      with.erase(rotary);
    }
    EXPECT_EQ(without, with);
  }
  EXPECT_EQ(names(layer_operators(tiny_llama(), fused, slice(2, 4))),
            names(layer_operators(tiny_llama(), Stack{}, slice(2, 4))));
}

// Queries of 64 elements, keys and values of 32 each are read and written in place, and the latter to the cache.
TEST(Passes, rotation_in_place_writes_the_cache) {
  Stack fused;
  fused.fusion.decode_rotary = true;
  Slice part = prompt(4);
  expect_kernel(find(layer_operators(tiny_llama(), fused, part), "attention.cache").forward, {0, (2 * 128 + 64) * 2},
                "16 bits");
  part.formats.cache = hardware::CacheFormat::fp8;
  expect_kernel(find(layer_operators(tiny_llama(), fused, part), "attention.cache").forward, {0, 2 * 128 * 2 + 64},
                "8 bits");
}

// 8 tokens: queries 64 elements, keys and values 32 each. Split: all read and written; cache: keys and values read, and
// written in its format; joined: the result read and written. Generated tokens and training have no such kernels.
TEST(Passes, separate_kernels_copy_the_heads_of_a_prompt) {
  Stack copies;
  copies.fusion.heads = false;
  Slice part = prompt(4);
  const auto list = layer_operators(tiny_llama(), copies, part);
  expect_kernel(find(list, "attention.split").forward, {0, 2 * (64 + 64) * 2}, "split");
  expect_kernel(find(list, "attention.cache").forward, {0, 2 * 64 * 2, 2}, "cache");
  expect_kernel(find(list, "attention.join_heads").forward, {0, 2 * 64 * 2}, "join");
  part.formats.cache = hardware::CacheFormat::fp8;
  expect_kernel(find(layer_operators(tiny_llama(), copies, part), "attention.cache").forward, {0, 64 * 2 + 64, 2},
                "fp8");
  for (const Slice& other : {step(7), slice(2, 4)}) {
    EXPECT_EQ(names(layer_operators(tiny_llama(), copies, other)),
              names(layer_operators(tiny_llama(), Stack{}, other)));
  }
}

// 2 x 128 logits of four bytes; 4 + 3 x 8 + 4 + 6 x 20 bytes each. Every rank of two sorts all of them, and an
// all-gather moves half of what an all-reduce of as many bytes moves.
TEST(Passes, top_p_sorts_the_whole_vocabulary) {
  Stack sorts;
  sorts.sampling = hardware::Sampling::top_p;
  const auto list = head_operators(tiny_llama(), sorts, step(7));
  expect_kernel(find(list, "head.logits").forward, {2 * 2 * 128 * 8, (16 + 1024) * 2 + 256 * 4}, "logits");
  expect_kernel(find(list, "sample").forward, {0, 256 * 152, 11}, "sample");
  EXPECT_EQ(list.back().boundary_bytes, Bytes(256.0 * 4 / 2));
  Model model = tiny_llama();
  model.vocab = 256;
  model.kv_heads = 2;
  Slice half = step(7);
  half.tp = 2;
  EXPECT_EQ(find(head_operators(model, sorts, half), "sample").forward.bytes, Bytes(512 * 152));
  EXPECT_EQ(names(head_operators(tiny_llama(), sorts, slice(2, 4))),
            names(head_operators(tiny_llama(), Stack{}, slice(2, 4))));
}

TEST(Passes, window_stops_the_growth) {
  const auto core = [](std::int64_t context) {
    return find(layer_operators(tiny_llama(), Stack{}, step(context), {false, false, false, 9}), "attention.decode");
  };
  EXPECT_EQ(core(7).growth.most, 2);
  EXPECT_EQ(core(8).growth.most, 1);
  EXPECT_EQ(core(9).growth, Growth{});
  EXPECT_EQ(core(50).forward, core(9).forward);
}

RC_GTEST_PROP(PassesLaw, growth_leads_from_one_context_to_a_later_one, ()) {
  const std::int64_t context = *rc::gen::inRange<std::int64_t>(1, 5000);
  const std::int64_t more = *rc::gen::inRange<std::int64_t>(0, 5000);
  const LayerKind kind{false, false, false, *rc::gen::element<std::int64_t>(0, 1, 300, 4000, 20000)};
  Model model = tiny_llama();
  if (*rc::gen::arbitrary<bool>()) { model.latent = {4, 6, 4, 2, 3}; }
  const auto now = layer_operators(model, Stack{}, step(context), kind);
  const auto later = layer_operators(model, Stack{}, step(context + more), kind);
  RC_ASSERT(now.size() == later.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Growth& growth = now[i].growth;
    const std::int64_t tokens = growth.most > 0 ? std::min(more, growth.most) : more;
    Kernel grown = now[i].forward;
    grown.n += tokens * growth.n;
    grown.flops += static_cast<double>(tokens) * growth.flops;
    grown.bytes += static_cast<double>(tokens) * growth.bytes;
    grown.held.kv_cache += static_cast<double>(tokens) * growth.bytes;
    RC_ASSERT(grown == later[i].forward);
  }
}

// Weights of 1 B, activations of 2: 128 x 1 + 16 x 1 in, 32 x 2 out.
TEST(Passes, narrow_weights_are_read_at_their_size) {
  Slice part = step(7);
  part.precision = Precision::fp8;
  const auto list = layer_operators(tiny_llama(), Stack{}, part);
  expect_kernel(find(list, "attention.qkv").forward, {512, 128 + 16 + 64, 2}, "qkv");
  EXPECT_EQ(find(list, "attention.qkv").forward.casts, Bytes(16 * 3));  // including a copy of 1 B
  expect_kernel(find(list, "attention.decode").forward, {448, 288}, "decode");
}

// DeepSeek, "Insights into DeepSeek-V3" (arXiv:2505.09343), table 1, bytes a token in two-byte elements: DeepSeek-V3
// 70.272 kB over 61 layers, Qwen2.5 72B 327.680 kB over 80, Llama 3.1 405B 516.096 kB over 126.
TEST(Passes, cache_of_a_token_is_as_published) {
  const Slice one = slice(1, 1);
  EXPECT_EQ(80 * kv_cache(llama(8192, 64, 8, 29568), {}, one, 1), Bytes(327680));
  EXPECT_EQ(126 * kv_cache(llama(16384, 128, 8, 53248), {}, one, 1), Bytes(516096));
  Model deepseek = llama(7168, 128, 128, 18432);
  deepseek.latent = {1536, 512, 128, 64, 128};
  EXPECT_EQ(61 * kv_cache(deepseek, {}, one, 1), Bytes(70272));
  Slice eighth = one;
  eighth.tp = 8;
  EXPECT_EQ(126 * kv_cache(llama(16384, 128, 8, 53248), {}, eighth, 1), Bytes(516096.0 / 8));
  EXPECT_EQ(61 * kv_cache(deepseek, {}, eighth, 1), Bytes(70272));  // latents are not split
}

TEST(Passes, cache_stops_at_the_window_and_splits_over_positions) {
  const Model model = tiny_llama();
  Slice one = slice(1, 1);
  EXPECT_EQ(kv_cache(model, {}, one, 100), Bytes(100 * 2 * 4 * 2));
  EXPECT_EQ(kv_cache(model, {false, false, false, 30}, one, 100), Bytes(30 * 16));
  EXPECT_EQ(kv_cache(model, {false, false, true, 0}, one, 100), Bytes(200 * 16));  // including the encoder's
  EXPECT_EQ(kv_cache(model, {false, true, false, 0}, one, 100), Bytes(0));
  one.cp = 4;
  EXPECT_EQ(kv_cache(model, {}, one, 100), Bytes(25 * 16));
}

// Its keys are those of the prompt, in the cache: 6 of them at context 7.
TEST(Passes, decoder_finds_the_encoder_in_the_cache) {
  Model model = gpt(1, 8, 2, 128);
  model.encoder_layers = 1;
  const auto list = layer_operators(model, Stack{}, step(7), {false, false, true, 0});
  EXPECT_THAT(names(list), testing::Not(testing::Contains("cross.memory")));
  expect_shape(find(list, "cross.decode").forward, 4, 1, 6, 4);
  EXPECT_EQ(find(list, "cross.decode").growth, Growth{});
}

TEST(Passes, encoder_rests_while_tokens_are_generated) {
  Model model = gpt(1, 8, 2, 128);
  model.encoder_layers = 1;
  const auto list = layer_operators(model, Stack{}, step(7), {false, true, false, 0});
  for (const auto& op : list) {
    EXPECT_EQ(op.forward, Kernel{});
    EXPECT_EQ(op.boundary, Boundary::none);
  }
  EXPECT_EQ(parameters(list), static_cast<double>(layer_parameters(model, {})));
}

// Mamba-2 with 4 heads of 8 and 16 states, 2 groups, convolution of 4: a state of 512 numbers in fp32 and 3 inputs of
// 32 + 2 x 2 x 16 = 96 channels in two bytes; read and written for each of 3 sequences, however long they are.
TEST(DecodeMixer, reads_and_writes_a_state_of_constant_size) {
  Model model = llama(64, 4, 4, 128);
  model.mixer.kind = MixerKind::mamba2;
  model.mixer.heads = 4;
  model.mixer.head_dim = 8;
  model.mixer.state = 16;
  model.mixer.groups = 2;
  const LayerKind kind = layer_kind(model, 0);
  EXPECT_EQ(kv_cache(model, kind, slice(1, 1), 10), Bytes(4.0 * 512 + 2.0 * 3 * 96));
  EXPECT_EQ(kv_cache(model, kind, slice(1, 1), 10), kv_cache(model, kind, slice(1, 1), 10'000));
  EXPECT_EQ(state_bytes(model, hardware::Precision::bf16), 2.0 * Bytes(4.0 * 512 + 2.0 * 3 * 96));  // two layers
  EXPECT_EQ(kv_bytes_per_token(model, 2.0), 0.0);
  Slice one = slice(3, 1);
  one.pass = Pass::decode;
  one.context = 700;
  const auto list = layer_operators(model, hardware::Stack{}, one, kind);
  // In and out: 96 channels, 4 steps, 32 results of 3 tokens.
  EXPECT_EQ(find(list, "mixer.step").forward.bytes, Bytes(2.0 * 3 * (96 + 4 + 32) + 2.0 * 3 * 4 * 512));
  EXPECT_EQ(find(list, "mixer.conv").forward.bytes, Bytes(2.0 * 2 * 3 * 96 + 2.0 * 2 * 3 * 3 * 96));
  EXPECT_EQ(find(list, "mixer.step").growth, Growth{});
  one.context = 7000;
  EXPECT_EQ(forward_flops(layer_operators(model, hardware::Stack{}, one, kind)), forward_flops(list));
}

// Chunks of 4 of a sequence of 8: scores of a chunk 4 x 16 per group, 4 x 8 per head, states in and out 2 x 16 x 8 per
// head: 2 x 64 + 4 (32 + 256) = 1280 multiply-adds a token.
TEST(ScanMixer, works_on_chunks) {
  Mixer mixer;
  mixer.kind = MixerKind::mamba2;
  mixer.heads = 4;
  mixer.head_dim = 8;
  mixer.state = 16;
  mixer.groups = 2;
  mixer.chunk = 4;
  EXPECT_EQ(scan_volume(mixer, 8), 1280.0);
  EXPECT_EQ(scan_volume(mixer, 800), 1280.0);
  EXPECT_EQ(scan_volume(mixer, 2), 2.0 * 32 + 4 * (16 + 256));  // one chunk of two
  EXPECT_EQ(step_volume(mixer), 2.0 * 4 * 8 * 16);
  Mixer delta;
  delta.kind = MixerKind::gated_delta;
  delta.heads = 2;
  delta.head_dim = 8;
  delta.key_heads = 1;
  delta.key_dim = 4;
  delta.chunk = 16;
  EXPECT_EQ(scan_volume(delta, 64), 2.0 * (16 * (3 * 4 + 2 * 8) + 3 * 4 * 8));
  EXPECT_EQ(step_volume(delta), 3.0 * 2 * 8 * 4);
}

// What quantisation leaves out keeps 16 bits: weights that are read, and the format of the GEMM.
TEST(operators, layers_that_are_not_quantised_keep_16_bits) {
  Model model = llama(1024, 16, 4, 4096);
  model.experts.count = 8;
  model.experts.active = 2;
  model.experts.ffn = 512;
  model.experts.shared_ffn = 256;
  const auto precision_of = [&](Quantized quantized, std::string_view name) {
    Slice s = slice(16, 1);
    s.pass = Pass::decode;
    s.context = 100;
    s.precision = hardware::Precision::fp4;
    s.formats.quantized = quantized;
    const auto layer = layer_operators(model, hardware::Stack{}, s, layer_kind(model, 0));
    const Operator& op = find(layer, name);
    const double weights = op.parameters * hardware::element_size(op.forward.precision).value();
    EXPECT_NEAR(op.forward.held.weights.value(), weights, 0.4 * weights) << name;  // not all experts have rows
    EXPECT_EQ(op.wide, op.forward.precision == hardware::Precision::bf16) << name;
    return op.forward.precision;
  };
  const auto narrow = hardware::Precision::fp4, wide = hardware::Precision::bf16;
  const std::vector<std::string_view> names = {"attention.qkv", "attention.output", "shared.in", "experts.in"};
  const auto expect = [&](Quantized quantized, const std::vector<hardware::Precision>& expected) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      EXPECT_EQ(precision_of(quantized, names[k]), expected[k]) << names[k];
    }
  };
  expect(Quantized::all, {narrow, narrow, narrow, narrow});
  expect(Quantized::but_qkv, {wide, narrow, narrow, narrow});
  expect(Quantized::but_attention, {wide, wide, narrow, narrow});
  expect(Quantized::experts, {wide, wide, wide, narrow});
}

TEST(quantized_layers, are_those_that_are_given_or_those_of_checkpoints_in_4_bits) {
  Model model = llama(1024, 16, 4, 4096);
  model.quantized_4_bit = Quantized::but_qkv;
  using hardware::Precision;
  Formats formats;
  EXPECT_EQ(quantized_layers(model, {}, Precision::fp4, formats), Quantized::but_qkv);
  EXPECT_EQ(quantized_layers(model, Quantized::all, Precision::fp4, formats), Quantized::all);
  EXPECT_EQ(quantized_layers(model, {}, Precision::fp8, formats), Quantized::all);
  EXPECT_EQ(quantized_layers(model, {}, Precision::bf16, formats), Quantized::all);
  formats.weights = hardware::StorageFormat::int4;
  EXPECT_EQ(quantized_layers(model, {}, Precision::bf16, formats), Quantized::but_qkv);
}

}  // namespace
}  // namespace orrery::workload::test::operators_passes_test
