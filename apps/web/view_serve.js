// `orrery plan --task serve`: deployments of an inference engine for a load, within a service level.
import {stream} from "./api.js";
import {scatter} from "./charts.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";
import * as pareto from "./pareto.js";
import {controls, searches} from "./search.js";

// What is set when the view is opened first.
export const defaults = {devices: "8", isl: "2048", osl: "256", slo: "ttft_p99=2s tpot_p99=50ms"};

export const asked = (body) => ({...body, top: 30});

const search = searches("plan");

const measures = {
  goodput: {title: "requests/s per GPU", value: (c) => c.goodput_rps_per_gpu, format: f.count, more: true},
  ttft: {title: "TTFT p99", value: (c) => c.serve.ttft_s.p99, format: f.seconds},
  tpot: {title: "TPOT p99", value: (c) => c.serve.tpot_s.p99, format: f.seconds},
  cost: {title: "USD per million tokens", value: (c) => c.serve.usd_per_million_output_tokens ?? NaN, format: f.dollars},
  energy: {title: "energy per token", value: (c) => c.serve.energy_J_per_output_token ?? NaN, format: f.joules},
  gpus: {title: "GPUs", value: (c) => c.gpus_used, format: f.grouped},
};

// The flags of a deployment that was found, so that it alone is searched.
export const flagsOf = (c) => {
  const engine = c.engine ?? c.decode;
  const values = (key) => [...new Set([engine[key], ...(c.prefill ? [c.prefill[key]] : [])])].join(",");
  return {tp: values("tp"), pp: values("pp"), ep: values("ep"), "attention-dp": values("attention_dp"),
    "max-batched-tokens": String(c.max_batched_tokens), pools: c.prefill ? "disaggregated" : "aggregated"};
};

const columns = (best) => [
  {title: "req/s", text: (c) => f.count(c.goodput_rps_at_slo), value: (c) => c.goodput_rps_at_slo},
  {title: "per GPU", text: (c) => f.count(c.goodput_rps_per_gpu), value: (c) => c.goodput_rps_per_gpu},
  {title: "GPUs", text: (c) => f.grouped(c.gpus_used), value: (c) => c.gpus_used},
  ...best.some((c) => c.serve.usd_per_million_output_tokens) ? [{title: "USD/M tokens", text: (c) => f.dollars(c.serve.usd_per_million_output_tokens ?? 0), value: (c) => c.serve.usd_per_million_output_tokens ?? 0}] : [],
  ...best.some((c) => c.serve.energy_J_per_output_token) ? [{title: "per token", text: (c) => f.joules(c.serve.energy_J_per_output_token ?? 0), value: (c) => c.serve.energy_J_per_output_token ?? 0}] : [],
  {title: "TTFT p99", text: (c) => f.seconds(c.serve.ttft_s.p99), value: (c) => c.serve.ttft_s.p99},
  {title: "TPOT p99", text: (c) => f.seconds(c.serve.tpot_s.p99), value: (c) => c.serve.tpot_s.p99},
  {title: "tokens", text: (c) => f.grouped(c.max_batched_tokens), value: (c) => c.max_batched_tokens},
  {title: "deployment", left: true, text: (c) => c.deployment, value: (c) => c.deployment},
];

// Without a service level a load is sustained if requests are completed as fast as they arrive.
const hasSlo = (answer) => answer.best.some((c) => c.serve.slo.length > 0);
const group = (answer, trade) => hasSlo(answer)
  ? (trade.meets_slo ? "within the service level" : "beyond the service level")
  : (trade.meets_slo ? "sustained" : "overloaded");

const trades = (answer) => {
  const points = answer.front.map((t) => ({x: t.tokens_per_s_per_user, y: t.tokens_per_s_per_gpu, label: t.deployment,
    group: group(answer, t)}));
  if (points.length === 0) return [];
  return [el("h2", {}, "Throughput against speed for a user"),
    el("p", {class: "hint"}, "No deployment that was tried has more of both."),
    scatter("Tokens per second and GPU against tokens per second of a user", points,
      {x: "tokens/s of a user", y: "tokens/s per GPU", xFormat: f.count, yFormat: f.count})];
};

const results = (answer, ui, {use, remember}, again) => {
  const best = answer.best.map((c) => ({...c, label: c.deployment}));
  const s = answer.space;
  const action = {title: "", left: true, text: (c) => el("button", {type: "button", onclick: () => use(flagsOf(c))}, "Use")};
  return [
    el("p", {}, `${f.grouped(s.points)} deployments simulated at ${f.grouped(s.simulated_loads)} loads: ${f.grouped(s.infeasible)} cannot run, ${f.grouped(s.missed)} miss the service level or are overloaded at any load.`),
    table([...columns(best), action], best, {caption: hasSlo(answer) ? `most goodput per ${answer.objective} within the service level` : `most requests per ${answer.objective}, without a service level`, rowclass: (c) => c === best[0] ? "best" : null}),
    ...trades(answer),
    el("h2", {}, "One measure against another"),
    ...pareto.chart(best, measures, ui, {fallback: {x: "tpot", y: "goodput"},
      changed: (id) => { remember(); again(); document.getElementById(id)?.focus(); }, onpoint: (c) => use(flagsOf(c))}),
    ...(answer.explanation ?? []).length ? [el("h2", {}, "Why this deployment"), el("ul", {class: "notes"}, ...answer.explanation.map((line) => el("li", {}, line)))] : [],
    ...(answer.not_searched ?? []).length ? [el("h2", {}, "Not searched"), el("p", {class: "hint"}, answer.not_searched.join("; "))] : [],
  ];
};

// The best deployment as command lines of a server: the search again, with --emit.
export const launcher = async (body, server, signal) => (await stream("plan", {...body, emit: server}, () => {}, signal)).text;

// acts: {use(flags), remember()}; ui: what is chosen in this view.
export const show = (box, body, ui, acts) => {
  const again = () => { if (box.isConnected && box.dataset.view === "serve") show(box, body, ui, acts); };
  const request = asked(body);
  const current = search.of(request);
  const start = () => { ui.searched = "1"; acts.remember(); search.start(request, again); };
  const cancel = () => { delete ui.searched; acts.remember(); search.cancel(); };
  if (ui.searched && !current) { queueMicrotask(() => { if (!search.of(request)) search.start(request, again); }); }
  const nothing = current?.answer && current.answer.best.length === 0;
  box.replaceChildren(
    el("p", {class: "hint"}, "Simulates each deployment at rising loads, and finds the one with the most goodput within the service level (without one: the highest sustained load). Fields that are set restrict the search: tp 4,8."),
    controls(current, {title: "Search deployments", start, cancel}),
    ...(current?.error ? [el("p", {class: "worse"}, current.error)] : []),
    ...(nothing ? [el("p", {class: "worse"}, current.answer.nothing_fits)] : []),
    ...(current?.answer && !nothing ? results(current.answer, ui, acts, again) : []));
};
