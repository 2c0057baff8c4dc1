// Sliders for the figures that a purchase decides: what the step would take with more or less of each.
import {call} from "./api.js";
import {bars} from "./charts.js";
import {el} from "./dom.js";
import {figureTitle} from "./form.js";
import * as f from "./format.js";
import {at, times} from "./state.js";

const kRange = 4;        // from a quarter to four times
const kDeviceRange = 8;  // in powers of two, so that they fill nodes

export const paths = (entry) => [
  "accelerator.matrix_peak", "accelerator.memory_bandwidth", "accelerator.memory",
  ...entry.dimensions.map((_, i) => `dimensions.${i}.bandwidth`),
  ...entry.dimensions.map((_, i) => `dimensions.${i}.link.latency`),
  ...(entry.second_tier ? ["second_tier.bandwidth"] : []),
].filter((path) => at(entry, path) !== undefined);

const valueText = (entry, path, factor) => {
  const value = at(entry, path);
  const scaled = times(typeof value === "object" ? (value.bf16 ?? Object.values(value)[0]) : value, factor);
  return `${typeof scaled === "string" ? scaled.replace(/^[0-9.eE+-]+/, (n) => Number(n).toPrecision(4).replace(/\.?0+$/, "")) : scaled} (×${factor.toFixed(2)})`;
};

// One slider: `text(factor)` is shown beside it.
const slider = (path, title, state, {range, step, text, changed}) => {
  const id = `factor-${path}`;
  const factor = state.factors[path] ?? 1;
  const output = el("output", {for: id}, text(factor));
  return el("div", {class: "slider"}, el("label", {for: id}, title),
    el("input", {id, type: "range", min: -Math.log2(range), max: Math.log2(range), step, value: Math.log2(factor), oninput: (e) => {
      const next = 2 ** Number(e.target.value);
      if (Math.abs(next - 1) < 1e-9) delete state.factors[path];
      else state.factors[path] = next;
      output.textContent = text(next);
      changed();
    }}), output);
};

export const show = (box, entry, state, changed) => {
  const sliders = paths(entry).map((path) => slider(path, figureTitle(entry, path), state,
    {range: kRange, step: "0.05", text: (factor) => valueText(entry, path, factor), changed}));
  const devices = Number(state.flags.devices) || 0;
  if (devices > 0) {
    sliders.push(slider("devices", "devices", state, {range: kDeviceRange, step: "1", changed,
      text: (factor) => `${f.grouped(devices * factor)} (×${factor.toFixed(factor < 1 ? 3 : 0)})`}));
  }
  box.replaceChildren(
    el("p", {class: "hint"}, "Each change is estimated at once; plan fields that are empty are chosen anew. The command line below has the changed cluster."),
    ...sliders,
    el("div", {class: "row"}, el("button", {type: "button", onclick: () => { state.factors = {}; changed(); show(box, entry, state, changed); }}, "All as they are")),
    el("div", {id: "what-if-answer"}));
};

export const answer = async (box, before, after, signal) => {
  const [a, b] = await Promise.all([call("estimate", before, signal), call("estimate", after, signal)]);
  const change = b.step_time_s / a.step_time_s - 1;
  box.replaceChildren(
    el("p", {}, `Step ${f.seconds(a.step_time_s)} as it is, ${f.seconds(b.step_time_s)} changed: `,
      el("strong", {class: change < 0 ? "better" : change > 0 ? "worse" : null}, f.signed(change)),
      b.feasible ? "" : `; does not fit: ${b.infeasible_reason}`),
    el("p", {}, `${f.count(a.tokens_per_s)} tokens/s as it is, ${f.count(b.tokens_per_s)} changed: ${f.signed(b.tokens_per_s / a.tokens_per_s - 1)}`,
      a.cost_usd_per_step && b.cost_usd_per_step ? `; cost per step ${f.signed(b.cost_usd_per_step / a.cost_usd_per_step - 1)}` : ""),
    bars("Parts of the step time before and after", [{name: "as it is", parts: a.breakdown_s}, {name: "changed", parts: b.breakdown_s}], f.seconds));
};
