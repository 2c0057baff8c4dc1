// Plans side by side, with what makes the difference: the sentences of `orrery estimate --against`.
import {call} from "./api.js";
import {bars} from "./charts.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";
import {memoryParts, planText} from "./view_estimate.js";

// The value of --against for a plan with these flags: "tp=4 pp=auto", where an empty field is chosen.
export const against = (flags, common) => {
  const change = ([name, value]) => `${name}=${value === "" ? "auto" : value}`;
  const changes = Object.entries(flags).filter(([name, value]) => value !== (common[name] ?? ""));
  return changes.length ? changes.map(change).join(" ") : change(["tp", flags.tp ?? ""]);
};

const sentences = (name, lines) => [el("h3", {}, name), el("ul", {class: "notes"}, ...lines.map((line) => el("li", {}, line)))];

const differences = (others) => others.length === 0 ? [] : [el("h2", {}, "What makes the difference"),
  ...others.flatMap((other, i) => sentences(`Plan ${i + 2} against plan 1`, other.difference))];

// `body`: the request of the first plan; `others`: values of --against. acts: {use(i), remove(i), first(i)}.
export const show = async (box, body, others, acts, signal) => {
  if (body === null) {
    box.replaceChildren(el("p", {class: "hint"}, "Press Compare at a plan of the search, or keep the present plan, to see plans side by side."));
    return;
  }
  const answers = others.length === 0 ? [await call("estimate", body, signal)]
    : await Promise.all(others.map((text) => call("estimate", {...body, against: text}, signal)));
  const first = answers[0];
  const plans = [first, ...answers.map((a) => a.against).filter(Boolean)];
  const names = plans.map((_, i) => `plan ${i + 1}`);
  const line = (title, text) => [title, ...plans.map(text)];
  const several = new Set(plans.map((e) => e.devices)).size > 1;
  const lines = [
    line("plan", (e) => planText(e.plan)),
    ...several ? [line("devices", (e) => f.grouped(e.devices))] : [],
    line("step time", (e) => f.seconds(e.step_time_s)),
    line("against plan 1", (e) => e === first ? "" : f.signed(e.step_time_s / first.step_time_s - 1)),
    line("MFU", (e) => f.percent(e.mfu)),
    line("memory", (e) => `${f.bytes(e.memory_B.total)}${e.feasible ? "" : " (does not fit)"}`),
    line("cost per step", (e) => e.cost_usd_per_step ? f.dollars(e.cost_usd_per_step) : ""),
    line("energy per step", (e) => e.energy_J_per_step ? f.joules(e.energy_J_per_step) : ""),
    ...Object.keys(first.breakdown_s).map((part) => line(f.words(part), (e) => f.seconds(e.breakdown_s[part] > 1e-9 * e.step_time_s ? e.breakdown_s[part] : 0))),
  ];
  const columns = [{title: "", left: true, text: (r) => r[0]}, ...names.map((name, i) => ({title: name, left: true, wraps: true, text: (r) => r[i + 1]}))];
  box.replaceChildren(
    bars("Parts of the step time of each plan", plans.map((e, i) => ({name: names[i], parts: e.breakdown_s})), f.seconds),
    bars("Memory of each plan", plans.map((e, i) => ({name: names[i], parts: memoryParts(e)})), f.bytes, {limit: first.memory_B.capacity}),
    ...differences(plans.slice(1)),
    table(columns, lines, {caption: "plans side by side"}),
    el("div", {class: "row"}, ...names.flatMap((name, i) => [
      el("button", {type: "button", onclick: () => acts.use(i)}, `Use ${name}`),
      i > 0 ? el("button", {type: "button", onclick: () => acts.first(i)}, `Compare with ${name}`) : null,
      el("button", {type: "button", onclick: () => acts.remove(i)}, `Remove ${name}`)]).filter(Boolean)));
};
