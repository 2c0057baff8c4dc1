// Plans side by side, with what makes the difference.
import {call} from "./api.js";
import {bars} from "./charts.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";
import {memoryParts, planText} from "./view_estimate.js";

// The parts of the step that differ, largest first: "exposed comm +1.2 s, bubble -0.3 s".
const differences = (a, b) => {
  const parts = Object.keys(a.breakdown_s).map((name) => [name, b.breakdown_s[name] - a.breakdown_s[name]])
    .filter(([, d]) => Math.abs(d) > 1e-4 * a.step_time_s).sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]));
  return parts.map(([name, d]) => `${f.words(name)} ${d > 0 ? "+" : "-"}${f.seconds(Math.abs(d))}`).join(", ");
};

export const show = async (box, bodies, {use, remove}, signal) => {
  if (bodies.length === 0) {
    box.replaceChildren(el("p", {class: "hint"}, "Press Compare at a plan of the search, or keep the present plan, to see plans side by side."));
    return;
  }
  const answers = await Promise.all(bodies.map((body) => call("estimate", body, signal)));
  const first = answers[0];
  const names = answers.map((_, i) => `plan ${i + 1}`);
  const line = (title, text) => [title, ...answers.map(text)];
  const lines = [
    line("plan", (e) => planText(e.plan)),
    line("step time", (e) => f.seconds(e.step_time_s)),
    line("against plan 1", (e) => e === first ? "" : f.signed(e.step_time_s / first.step_time_s - 1)),
    line("because of", (e) => e === first ? "" : differences(first, e)),
    line("MFU", (e) => f.percent(e.mfu)),
    line("memory", (e) => `${f.bytes(e.memory_B.total)}${e.feasible ? "" : " (does not fit)"}`),
    line("cost per step", (e) => e.cost_usd_per_step ? f.dollars(e.cost_usd_per_step) : ""),
    ...Object.keys(first.breakdown_s).map((part) => line(f.words(part), (e) => f.seconds(e.breakdown_s[part]))),
  ];
  const columns = [{title: "", left: true, text: (r) => r[0]}, ...names.map((name, i) => ({title: name, left: true, text: (r) => r[i + 1]}))];
  box.replaceChildren(
    bars("Parts of the step time of each plan", answers.map((e, i) => ({name: names[i], parts: e.breakdown_s})), f.seconds),
    bars("Memory of each plan", answers.map((e, i) => ({name: names[i], parts: memoryParts(e)})), f.bytes, {limit: first.memory_B.capacity}),
    table(columns, lines, {caption: "plans side by side"}),
    el("div", {class: "row"}, ...names.flatMap((name, i) => [
      el("button", {type: "button", onclick: () => use(i)}, `Use ${name}`), el("button", {type: "button", onclick: () => remove(i)}, `Remove ${name}`)])));
};
