#include "orrery/launch/serving.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::launch {

namespace {

constexpr std::string_view kTransfer = R"('{"kv_connector":"NixlConnector","kv_role":"kv_both"}')";

std::string accelerators_of(const ServedPool& pool) {
  const std::int64_t count = pool.tp * pool.pp * pool.attention_dp;
  return fmt::format("{} accelerator{}", count, count == 1 ? "" : "s");
}

// Of a checkpoint that is quantised when it is loaded; servers refuse the flag for one that is quantised already.
std::string quantization_of(const ServedFleet& fleet) {
  return fleet.quantization.empty() ? std::string() : " ${QUANTIZATION:+--quantization \"$QUANTIZATION\"}";
}

// Arguments of vLLM's engine, which Dynamo's worker takes, too.
std::string vllm_arguments(const ServedFleet& fleet, const ServedPool& pool) {
  std::string text = fmt::format(" --tensor-parallel-size {}", pool.tp);
  if (pool.pp > 1) { text += fmt::format(" --pipeline-parallel-size {}", pool.pp); }
  if (pool.attention_dp > 1) { text += fmt::format(" --data-parallel-size {}", pool.attention_dp); }
  if (pool.ep > 1) { text += " --enable-expert-parallel"; }
  if (pool.redundant_experts > 0) {
    text += fmt::format(R"( --enable-eplb --eplb-config '{{"num_redundant_experts":{}}}')", pool.redundant_experts);
  }
  if (pool.overlaps_batches) {
    // Of tokens, of which a sequence has one more than drafts. The server has no "never" for one of the two.
    const auto threshold = [](std::int64_t tokens) { return tokens > 0 ? tokens : std::int64_t{1'000'000}; };
    text += fmt::format(
        " --enable-dbo --dbo-decode-token-threshold {} --dbo-prefill-token-threshold {} --all2all-backend {}",
        threshold(fleet.two_batch_decodes * (1 + fleet.drafts)), threshold(fleet.two_batch_prompts),
        pool.role == "prefill" ? "deepep_high_throughput" : "deepep_low_latency");
  }
  text += fmt::format(" \\\n    --max-num-batched-tokens {} --max-num-seqs {}", fleet.max_batched_tokens,
                      fleet.max_sequences);
  if (pool.memory_use > 0.0) { text += fmt::format(" --gpu-memory-utilization {:.4g}", pool.memory_use); }
  if (fleet.stream_interval > 1) { text += fmt::format(" --stream-interval {}", fleet.stream_interval); }
  text += quantization_of(fleet);
  if (!fleet.kv_format.empty()) { text += " --kv-cache-dtype " + fleet.kv_format; }
  if (fleet.longest > 0) { text += fmt::format(" --max-model-len {}", fleet.longest); }
  if (fleet.drafts > 0) {
    text += fmt::format(R"( \
    --speculative-config '{{"method":"mtp","num_speculative_tokens":{}}}')",
                        fleet.drafts);
  }
  return text;
}

constexpr std::int64_t kFirstPort = 30000;

// An engine on accelerators of one node, or on all of several.
struct Seat {
  const ServedPool* pool;
  std::int64_t node = 0, nodes = 1, first = 0, count = 1, port = kFirstPort;
};

// Large engines first, so that none is divided that fits in a node.
std::vector<Seat> seats_of(const ServedFleet& fleet) {
  std::vector<Seat> seats;
  for (const ServedPool* pool : {fleet.prefill ? &*fleet.prefill : nullptr, &fleet.engine}) {
    if (pool == nullptr) { continue; }
    const std::int64_t count = pool->tp * pool->pp * pool->attention_dp;
    for (std::int64_t i = 0; i < pool->replicas; ++i) { seats.push_back({pool, 0, 1, 0, count}); }
  }
  std::ranges::stable_sort(seats, std::greater<>(), &Seat::count);
  std::int64_t all = 0;
  for (const Seat& seat : seats) { all += seat.count; }
  const std::int64_t of_node = fleet.node_accelerators > 0 ? fleet.node_accelerators : all;
  std::int64_t node = 0, used = 0, engines = 0;
  for (Seat& seat : seats) {
    if (used > 0 && used + seat.count > of_node) { ++node, used = engines = 0; }
    seat.node = node;
    seat.nodes = (seat.count + of_node - 1) / of_node;
    seat.first = used;
    seat.port = kFirstPort + engines++;
    used += seat.count;
    if (seat.nodes > 1) { node += seat.nodes, used = engines = 0; }
  }
  return seats;
}

std::int64_t nodes_of(const std::vector<Seat>& seats) {
  std::int64_t nodes = 1;
  for (const Seat& seat : seats) { nodes = std::max(nodes, seat.node + seat.nodes); }
  return nodes;
}

std::string numbers(std::int64_t first, std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) { text += fmt::format("{}{}", i > 0 ? "," : "", first + i); }
  return text;
}

std::string url_of(const Seat& seat) { return fmt::format("\"http://$(host {}):{}\"", seat.node, seat.port); }

// Of the engines of a role.
std::vector<Seat> seats_in(const std::vector<Seat>& seats, std::string_view role) {
  std::vector<Seat> found;
  for (const Seat& seat : seats) {
    if (seat.pool->role == role) { found.push_back(seat); }
  }
  return found;
}

// What vLLM needs to run on several nodes: of its tp and pp ranks, or of its ranks of data-parallel attention.
std::string vllm_nodes(const ServedPool& pool, std::int64_t nodes) {
  if (nodes <= 1) { return {}; }
  std::string text = " \\\n    ";
  if (pool.attention_dp > 1) {
    const std::int64_t local = pool.attention_dp / nodes;
    text += fmt::format(
        "--data-parallel-size-local {0} --data-parallel-start-rank \"$(($3 * {0}))\" "
        "--data-parallel-address \"$(host \"$4\")\" \\\n    --data-parallel-rpc-port \"$(($2 + 2000))\"",
        local);
  } else {
    text += fmt::format(
        "--distributed-executor-backend mp --nnodes {} --node-rank \"$3\" \\\n    --master-addr "
        "\"$(host \"$4\")\" --master-port \"$(($2 + 2000))\"",
        nodes);
  }
  return text + " $(test \"$3\" = 0 || echo --headless)";
}

// Whether lines of vLLM can start an engine: its tp and pp ranks, or those of data-parallel
// attention, divide over nodes; not both.
bool fits_vllm(const ServedPool& pool, std::int64_t nodes) {
  return nodes <= 1 || pool.attention_dp == 1 || pool.attention_dp % nodes == 0;
}

std::string vllm_command(const ServedFleet& fleet, const ServedPool& pool, std::int64_t nodes) {
  std::string text = fleet.prefill ? "VLLM_NIXL_SIDE_CHANNEL_HOST=\"$(host \"$NODE\")\" \\\n"
                                     "    VLLM_NIXL_SIDE_CHANNEL_PORT=\"$((5600 + ($2 - 30000) * 100))\" "
                                   : "";
  text += fmt::format("vllm serve \"$MODEL\"{}", vllm_arguments(fleet, pool));
  if (fleet.prefill) { text += fmt::format(" \\\n    --kv-transfer-config {}", kTransfer); }
  return text + vllm_nodes(pool, nodes) + " \\\n    --host 0.0.0.0 --port \"$2\"";
}

// Arguments of SGLang's engine, which Dynamo's worker takes, too. Its tp counts all ranks of a stage; data-parallel
// attention divides them.
std::string sglang_arguments(const ServedFleet& fleet, const ServedPool& pool, std::int64_t nodes) {
  std::string text = fmt::format(" --model-path \"$MODEL\" --tp-size {}", pool.tp * pool.attention_dp);
  if (pool.pp > 1) { text += fmt::format(" --pp-size {}", pool.pp); }
  if (pool.attention_dp > 1) { text += fmt::format(" --dp-size {} --enable-dp-attention", pool.attention_dp); }
  if (pool.ep > 1) { text += fmt::format(" --ep-size {}", pool.ep); }
  if (pool.redundant_experts > 0) { text += fmt::format(" --ep-num-redundant-experts {}", pool.redundant_experts); }
  if (pool.overlaps_batches) { text += " --enable-two-batch-overlap"; }
  if (pool.ep > 1 && !fleet.expert_backend.empty()) { text += " --moe-a2a-backend " + fleet.expert_backend; }
  // Its limits are those of all ranks of attention dp together.
  text += fmt::format(" \\\n    --chunked-prefill-size {} --max-running-requests {}",
                      fleet.max_batched_tokens * pool.attention_dp, fleet.max_sequences * pool.attention_dp);
  if (pool.memory_use > 0.0) { text += fmt::format(" --mem-fraction-static {:.3g}", pool.memory_use); }
  if (fleet.stream_interval > 1) { text += fmt::format(" --stream-interval {}", fleet.stream_interval); }
  text += quantization_of(fleet);
  if (fleet.longest > 0) { text += fmt::format(" --context-length {}", fleet.longest); }
  if (fleet.drafts > 0) {
    text += fmt::format(
        " \\\n    --speculative-algorithm EAGLE --speculative-num-steps {} --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens {}",
        fleet.drafts, fleet.drafts + 1);
  }
  if (!fleet.kv_format.empty()) {
    text += " --kv-cache-dtype " + (fleet.kv_format == "fp8" ? "fp8_e4m3" : fleet.kv_format);
  }
  if (fleet.prefill) {
    text += " \\\n    --disaggregation-mode " + pool.role;
    if (pool.role == "prefill") { text += " --disaggregation-bootstrap-port \"$(($2 + 1000))\""; }
  }
  if (nodes > 1) {
    text += fmt::format(" \\\n    --nnodes {} --node-rank \"$3\" --dist-init-addr \"$(host \"$4\"):$(($2 + 2000))\"",
                        nodes);
  }
  return text + " \\\n    --host 0.0.0.0";
}

std::string sglang_command(const ServedFleet& fleet, const ServedPool& pool, std::int64_t nodes) {
  return "python3 -m sglang.launch_server" + sglang_arguments(fleet, pool, nodes) + " --port \"$2\"";
}

std::string dynamo_command(const ServedFleet& fleet, const ServedPool& pool, std::int64_t nodes) {
  if (fleet.workers_are_sglang) {
    return "python3 -m dynamo.sglang" + sglang_arguments(fleet, pool, nodes) +
           (fleet.prefill ? " --disaggregation-transfer-backend nixl" : "");
  }
  std::string text = fleet.prefill ? "VLLM_NIXL_SIDE_CHANNEL_PORT=\"$((5600 + ($2 - 30000) * 100))\" " : "";
  text += fmt::format("python3 -m dynamo.vllm --model \"$MODEL\"{}", vllm_arguments(fleet, pool));
  if (fleet.prefill) {
    text += fmt::format(" \\\n    --disaggregation-mode {} --kv-transfer-config {}", pool.role, kTransfer);
  }
  return text + vllm_nodes(pool, nodes);
}

// A function of the shell that starts one engine.
std::string function_of(Server server, const ServedFleet& fleet, const ServedPool& pool, std::int64_t nodes) {
  std::string command;
  switch (server) {
    case Server::vllm: command = vllm_command(fleet, pool, nodes); break;
    case Server::sglang: command = sglang_command(fleet, pool, nodes); break;
    case Server::dynamo: command = dynamo_command(fleet, pool, nodes); break;
  }
  const char* const variable = fleet.is_amd ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  return fmt::format("# {0}: {1} of these, each on {2}. {0} DEVICES PORT{3}\n{0}() {{\n  {4}=\"$1\" {5} &\n}}\n\n",
                     pool.role, pool.replicas, accelerators_of(pool), nodes > 1 ? " RANK FIRST_NODE" : "", variable,
                     command);
}

// What distributes requests to SGLang's engines, on port 8000.
std::string sglang_router(const ServedFleet& fleet, const std::vector<Seat>& seats) {
  std::string text = "python3 -m sglang_router.launch_router --host 0.0.0.0 --port 8000";
  const bool in_turn = fleet.routing == "round-robin", by_prefix = fleet.routing == "prefix-aware";
  text += fmt::format(" --policy {}", in_turn                     ? "round_robin"
                                      : by_prefix                 ? "cache_aware"
                                      : fleet.routing == "random" ? "random"
                                                                  : "power_of_two");
  if (!fleet.prefill) {
    text += " \\\n  --worker-urls";
    for (const Seat& seat : seats) { text += " " + url_of(seat); }
    return text + " &\n";
  }
  text += " --pd-disaggregation";
  for (const Seat& seat : seats_in(seats, "prefill")) {
    text += fmt::format(" \\\n  --prefill {} {}", url_of(seat), seat.port + 1000);
  }
  for (const Seat& seat : seats_in(seats, "decode")) { text += " \\\n  --decode " + url_of(seat); }
  return text + " &\n";
}

// Of vLLM's engines: nginx; of pools, the proxy of vLLM's tests, which passes on where keys and values are.
std::string vllm_router(const ServedFleet& fleet, const std::vector<Seat>& seats) {
  if (!fleet.prefill) {
    std::string text =
        "cat >nginx.conf <<END\nevents {\n  worker_connections 65536;\n}\nhttp {\n  client_max_body_size 0;\n  "
        "upstream engines {\n";
    if (fleet.routing != "round-robin") { text += "    least_conn;\n"; }
    for (const Seat& seat : seats) { text += fmt::format("    server $(host {}):{};\n", seat.node, seat.port); }
    return text +
           "  }\n  server {\n    listen 8000;\n    location / {\n      proxy_pass http://engines;\n      "
           "proxy_buffering off;\n      proxy_read_timeout 1d;\n    }\n  }\n}\nEND\nnginx -c \"$PWD/nginx.conf\" -g "
           "'daemon off;' &\n";
  }
  std::string text =
      "python3 \"${VLLM_SOURCE:?a checkout of vLLM}/tests/v1/kv_connector/nixl_integration/toy_proxy_server.py\" \\\n"
      "  --host 0.0.0.0 --port 8000";
  for (const auto& [role, flag] : {std::pair("prefill", "prefiller"), std::pair("decode", "decoder")}) {
    std::string hosts, ports;
    for (const Seat& seat : seats_in(seats, role)) {
      hosts += fmt::format(" \"$(host {})\"", seat.node);
      ports += fmt::format(" {}", seat.port);
    }
    text += fmt::format(" \\\n  --{0}-hosts{1} --{0}-ports{2}", flag, hosts, ports);
  }
  return text + " &\n";
}

std::string router_of(Server server, const ServedFleet& fleet, const std::vector<Seat>& seats) {
  if (server == Server::dynamo) {
    const bool by_prefix = fleet.routing == "prefix-aware", is_random = fleet.routing == "random";
    return fmt::format("python3 -m dynamo.frontend --router-mode {} &\n", by_prefix   ? "kv"
                                                                          : is_random ? "random"
                                                                                      : "round-robin");
  }
  if (seats.size() == 1) { return {}; }
  return server == Server::sglang ? sglang_router(fleet, seats) : vllm_router(fleet, seats);
}

// What a node runs.
std::string calls_of(bool is_sglang, const std::vector<Seat>& seats, std::int64_t node, std::int64_t of_node) {
  std::string text;
  for (const Seat& seat : seats) {
    if (node < seat.node || node >= seat.node + seat.nodes) { continue; }
    const std::string& role = seat.pool->role;
    if (seat.nodes == 1) {
      text += fmt::format("{} {} {}\n", role, numbers(seat.first, seat.count), seat.port);
    } else if (is_sglang || fits_vllm(*seat.pool, seat.nodes)) {
      text += fmt::format("{} {} {} {} {}\n", role, numbers(0, std::min(seat.count, of_node)), seat.port,
                          node - seat.node, seat.node);
    } else {
      text += fmt::format(
          "echo '{} on nodes {} to {}: its ranks of data-parallel attention do not divide over them' >&2\nexit 1\n",
          role, seat.node, seat.node + seat.nodes - 1);
    }
  }
  return text;
}

std::string indented(const std::string& text) {
  std::string out;
  bool is_start = true, is_file = false;  // lines of a file keep their beginning
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    if (line == "END\n") { is_file = false; }
    out += (is_start && !is_file && line != "END\n" ? "  " : "") + line;
    if (line.find("<<END") != std::string::npos) { is_file = true; }
    at = end;
  }
  return out;
}

}  // namespace

std::string serving_script(Server server, const ServedFleet& fleet) {
  const std::vector<Seat> seats = seats_of(fleet);
  const std::int64_t nodes = nodes_of(seats);
  std::string text = "#!/bin/sh\n";
  if (!fleet.note.empty()) { text += "# " + fleet.note + "\n"; }
  if (!fleet.missing.empty()) {
    text += fmt::format("# Simulated with settings that these lines do not have: {}\n", join(fleet.missing, ", "));
  }
  if (server == Server::dynamo) { text += "# etcd and NATS must run (ETCD_ENDPOINTS, NATS_SERVER).\n"; }
  text +=
      fmt::format("# MODEL: the checkpoint's name or folder; written for the model {}{}{}.\nMODEL=\"${{MODEL:?}}\"\n",
                  fleet.model, fleet.weights.empty() ? "" : " with weights in ", fleet.weights);
  if (!fleet.quantization.empty()) {
    text += fmt::format("# QUANTIZATION: {}, if the checkpoint has 16 bits; leave it out if its config.json says {}.\n",
                        fleet.quantization, fleet.quantization);
  }
  if (fleet.drafts > 0) {
    text +=
        "# Drafts come from the checkpoint's MTP modules, which few models have (DeepSeek-V3, GLM-4.5, Qwen3-Next);\n"
        "# for others name a draft model instead.\n";
  }
  if (server == Server::sglang && seats.size() > 1) {
    text += "# The router is a package of its own: sglang-router.\n";
  }
  if (nodes > 1) {
    text += fmt::format(
        "# Run it on each of the {0} nodes, with the number of the node (0 to {1}) as its argument.\n"
        "HOSTS=\"${{HOSTS:?names of {0} nodes, in their order}}\"\nNODE=\"${{1:?number of this node}}\"\n",
        nodes, nodes - 1);
  } else {
    text += "HOSTS=\"${HOSTS:-127.0.0.1}\"\nNODE=0\n";
  }
  text += "host() { echo \"$HOSTS\" | cut -d ' ' -f \"$(($1 + 1))\"; }\n\n";
  for (const ServedPool* pool : {fleet.prefill ? &*fleet.prefill : nullptr, &fleet.engine}) {
    if (pool == nullptr) { continue; }
    const std::int64_t nodes_of_one = seats_in(seats, pool->role).front().nodes;
    text += function_of(server, fleet, *pool, nodes_of_one);
  }
  const std::string router = router_of(server, fleet, seats);
  const bool is_sglang = server == Server::sglang || (server == Server::dynamo && fleet.workers_are_sglang);
  if (nodes == 1) { return text + calls_of(is_sglang, seats, 0, 0) + router + "wait\n"; }
  text += "case \"$NODE\" in\n";
  for (std::int64_t node = 0; node < nodes; ++node) {
    text += fmt::format("{})\n{}", node, indented(calls_of(is_sglang, seats, node, fleet.node_accelerators)));
    if (node == 0) { text += indented(router); }
    text += "  ;;\n";
  }
  return text + "esac\nwait\n";
}

}  // namespace orrery::launch
