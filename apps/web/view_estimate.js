// One plan: its numbers, where the time and the memory go, and why.
import {bars} from "./charts.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";

const number = (title, value, small = null) => el("div", {}, el("dt", {}, title), el("dd", {}, value, small ? el("small", {}, small) : null));

export const memoryParts = (e) => {
  const {weights, gradients, optimizer, activations, buffers, kv_cache} = e.memory_B;
  return {weights, gradients, optimizer, activations, buffers, kv_cache};
};

export const planText = (plan) => {
  const shown = ["tp", "cp", "pp", "ep", "dp", "vpp", "micro_batch", "zero", "recompute", "schedule"];
  return shown.filter((key) => !["cp", "ep", "vpp"].includes(key) || plan[key] > 1).map((key) => `${f.words(key)} ${plan[key]}`).join(", ");
};

export const headline = (e) => el("dl", {class: "numbers"},
  number(e.task === "inference" ? "Batch of requests" : "Step time", f.seconds(e.step_time_s),
    e.uncertainty ? `80 % interval ${f.seconds(e.uncertainty.p10_s)} to ${f.seconds(e.uncertainty.p90_s)}` : null),
  number("Throughput", `${f.count(e.tokens_per_s)} tokens/s`, `${f.count(e.samples_per_s)} sequences/s`),
  number("MFU", f.percent(e.mfu), `HFU ${f.percent(e.hfu)}`),
  number("Memory per device", f.bytes(e.memory_B.total), `of ${f.bytes(e.memory_B.capacity)}${e.feasible ? "" : ": does not fit"}`),
  number("Cost per step", e.cost_usd_per_step ? f.dollars(e.cost_usd_per_step) : "unknown", e.cost_basis ?? null),
  number("Energy per step", e.energy_J_per_step ? f.joules(e.energy_J_per_step) : "unknown", e.energy_basis ?? null));

// Why a part is as large as it is: {compute: "mlp.in 41 %, ...", ...}.
const partsTable = (title, parts, whole, format, reasons) => table(
  [{title, left: true, text: (r) => f.words(r[0]), value: (r) => r[0]},
   {title: "amount", text: (r) => format(r[1]), value: (r) => r[1]},
   {title: "share", text: (r) => f.percent(r[1] / whole), value: (r) => r[1]},
   {title: "because of", left: true, wraps: true, text: (r) => reasons[r[0]] ?? ""}],
  Object.entries(parts).filter(([, value]) => value > 1e-9 * whole), {caption: title});

const kComputing = ["compute", "memory"];  // what a kernel is limited by; collectives name their algorithm

const sums = (terms, key) => {
  const all = new Map();
  for (const t of terms) all.set(key(t), (all.get(key(t)) ?? 0) + t.time_s * t.count);
  return [...all].sort((a, b) => b[1] - a[1]);
};

const shares = (pairs, most) => {
  const whole = pairs.reduce((sum, [, time]) => sum + time, 0);
  return pairs.slice(0, most).filter(([, time]) => time > 0.005 * whole).map(([name, time]) => `${name} ${Math.round(100 * time / whole)} %`).join(", ");
};

const timeReasons = (e) => {
  const {plan} = e;
  const kernels = (e.terms ?? []).filter((t) => kComputing.includes(t.bound) && !["finish", "recompute"].includes(t.segment));
  const groups = Object.entries(e.comm_s.by_group).filter(([, t]) => t.exposed > 0).sort((a, b) => b[1].exposed - a[1].exposed);
  const batches = plan.micro_batches ? `, ${f.grouped(plan.micro_batches)} micro-batches` : "";
  return {
    compute: kernels.length === 0 ? "" : `${shares(sums(kernels, (t) => t.name), 4)}; limited by ${shares(sums(kernels, (t) => t.bound), 2)}`,
    recompute: `recompute ${plan.recompute}: forward work again in the backward pass`,
    exposed_comm: groups.map(([name, t]) => `${name} ${f.seconds(t.exposed)} of ${f.seconds(t.total)} is not hidden`).join(", "),
    bubble: `${plan.pp} stages${batches}${plan.vpp > 1 ? `, ${plan.vpp} chunks a stage` : ""}, ${plan.schedule}`,
    optimizer: `update of the weights; zero ${plan.zero} shards its state over ${plan.zero > 0 ? plan.dp * plan.cp : 1}`,
    offload: `transfers of ${plan.offload || "nothing"} that nothing hides`,
    host: "launches, data and bookkeeping of the software stack",
  };
};

const memoryReasons = (e) => {
  const {plan} = e;
  const split = (stage) => `over tp ${plan.tp}, pp ${plan.pp}${plan.ep > 1 ? `, experts over ep ${plan.ep}` : ""}${plan.zero >= stage ? `, sharded over dp ${plan.dp} (zero ${plan.zero})` : ""}`;
  return {
    weights: split(3), gradients: split(2), optimizer: split(1),
    activations: e.task === "inference" ? `micro-batch ${plan.micro_batch}`
      : `micro-batch ${plan.micro_batch} of ${f.grouped(e.seq)} tokens, recompute ${plan.recompute}, ${plan.pp > 1 ? `fullest stage: ${e.memory_B.stage} (stages 0 to ${plan.pp - 1})` : "one pipeline stage"}`,
    kv_cache: e.inference ? `${f.bytes(e.inference.kv_B_per_token)} a token` : "",
    buffers: "gathers, messages and the allocator of the stack",
  };
};

const communication = (e) => table(
  [{title: "group", left: true, text: (r) => r[0], value: (r) => r[0]},
   {title: "dimensions", left: true, text: (r) => r[2], value: (r) => r[2]},
   {title: "total", text: (r) => f.seconds(r[1].total), value: (r) => r[1].total},
   {title: "exposed", text: (r) => f.seconds(r[1].exposed), value: (r) => r[1].exposed},
   {title: "of step", text: (r) => f.percent(r[1].exposed / e.step_time_s), value: (r) => r[1].exposed}],
  Object.entries(e.comm_s.by_group).filter(([, times]) => times.total > 0).map(([name, times]) => [name, times, dimensionsOf(e, name)]),
  {caption: "communication by process group"});

// Which network dimensions a group spans, from the answer's groups.
const dimensionsOf = (e, group) => {
  const found = (e.groups ?? []).find((g) => g.group === group);
  return found ? found.extents.map((x) => `${x.dimension} ${x.size}`).join(" × ") : "";
};

const terms = (e) => table(
  [{title: "operator", left: true, text: (t) => t.name, value: (t) => t.name},
   {title: "segment", left: true, text: (t) => t.segment, value: (t) => t.segment},
   {title: "times", text: (t) => f.grouped(t.count), value: (t) => t.count},
   {title: "each", text: (t) => f.seconds(t.time_s), value: (t) => t.time_s},
   {title: "in all", text: (t) => f.seconds(t.time_s * t.count), value: (t) => t.time_s * t.count},
   {title: "FLOPs", text: (t) => f.count(t.flops), value: (t) => t.flops},
   {title: "bytes", text: (t) => f.bytes(t.bytes), value: (t) => t.bytes},
   {title: "bound", left: true, text: (t) => t.bound, value: (t) => t.bound}],
  e.terms ?? [], {sort: {column: 4, down: true}, caption: "operators of the slowest stage, per step; overlapped ones included"});

const notes = (title, lines) => lines && lines.length ? [el("h2", {}, title), el("ul", {class: "notes"}, ...lines.map((line) => el("li", {}, line)))] : [];

export const show = (box, e) => {
  box.replaceChildren(
    headline(e),
    el("p", {}, `Plan: ${planText(e.plan)}.`),
    ...(e.feasible ? [] : [el("p", {class: "worse"}, e.infeasible_reason)]),
    el("h2", {}, "Where the time goes"),
    bars("Parts of the step time", [{name: "step", parts: e.breakdown_s}], f.seconds),
    partsTable("time", e.breakdown_s, e.step_time_s, f.seconds, timeReasons(e)),
    el("h2", {}, `Memory of stage ${e.memory_B.stage}`),
    bars("Parts of the memory; the line is the capacity", [{name: "device", parts: memoryParts(e)}], f.bytes, {limit: e.memory_B.capacity}),
    partsTable("memory", memoryParts(e), e.memory_B.total, f.bytes, memoryReasons(e)),
    el("h2", {}, "Communication"), communication(e),
    ...notes("Chosen", e.chosen), ...notes("Warnings", e.warnings),
    el("h2", {}, "Operators"), terms(e),
    ...notes("Not modelled", e.not_modelled));
};
