// The search: progress, the best plans as a table, time against memory, plans to compare.
import {stream} from "./api.js";
import {scatter} from "./charts.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";
import {planText} from "./view_estimate.js";

const kPlanFlags = ["tp", "cp", "pp", "ep", "etp", "dp", "vpp", "micro_batch", "zero", "recompute", "schedule", "sequence_parallel", "tp_overlap"];

// The flags of `orrery estimate` that mean a plan that was found.
export const flagsOf = (plan) => Object.fromEntries(kPlanFlags.map((key) => [key.replaceAll("_", "-"), String(plan[key])]));

let search = null;  // {key, answer, running, progress, abort, error}

export const cancel = () => { if (search?.abort) search.abort.abort(); };

const start = (body, redraw) => {
  cancel();
  const mine = {key: JSON.stringify(body), answer: null, running: true, progress: null, abort: new AbortController(), error: null};
  search = mine;
  const tell = (done, all, unit) => { mine.progress = {done, all, unit}; redraw(); };
  stream("plan", {...body, top: 30, pareto: true, explain: true}, tell, mine.abort.signal)
    .then((answer) => { mine.answer = answer; })
    .catch((error) => { mine.error = error.name === "AbortError" ? "cancelled" : error.message; })
    .finally(() => { mine.running = false; if (search === mine) redraw(); });
  redraw();
};

const row = (e) => ({...e, label: planText(e.plan)});

const columns = [
  {title: "step", text: (e) => f.seconds(e.step_time_s), value: (e) => e.step_time_s},
  ...["tp", "cp", "pp", "ep", "dp", "vpp"].map((key) => ({title: key, text: (e) => String(e.plan[key]), value: (e) => e.plan[key]})),
  {title: "micro-batch", text: (e) => String(e.plan.micro_batch), value: (e) => e.plan.micro_batch},
  {title: "zero", text: (e) => String(e.plan.zero), value: (e) => e.plan.zero},
  {title: "recompute", left: true, text: (e) => e.plan.recompute, value: (e) => e.plan.recompute},
  {title: "schedule", left: true, text: (e) => e.plan.schedule, value: (e) => e.plan.schedule},
  {title: "memory", text: (e) => f.bytes(e.memory_B.total), value: (e) => e.memory_B.total},
  {title: "MFU", text: (e) => f.percent(e.mfu), value: (e) => e.mfu},
  {title: "USD/step", text: (e) => e.cost_usd_per_step ? f.dollars(e.cost_usd_per_step) : "", value: (e) => e.cost_usd_per_step ?? 0},
];

const filtered = (rows, text) => {
  const wanted = text.toLowerCase().split(/[ ,]+/).filter(Boolean);
  const names = (e) => `${e.label} cp ${e.plan.cp} ep ${e.plan.ep} vpp ${e.plan.vpp}`.toLowerCase();
  // "tp 8" or "tp8" or "interleaved"
  return rows.filter((e) => {
    const flat = ` ${names(e).replaceAll(",", " ")} `;
    return wanted.join(" ").match(/[a-z-]+ ?\d+|[a-z0-9-]+/g)?.every((part) => {
      const pair = part.match(/^([a-z-]+) ?(\d+)$/);
      return pair && !/^\d/.test(part) ? flat.includes(` ${pair[1].replace("-", " ")} ${pair[2]} `) : flat.includes(part);
    }) ?? true;
  });
};

let filter = "";

const results = (answer, use, keep) => {
  const best = answer.best.map(row);
  const actions = {title: "", left: true, text: (e) => el("span", {class: "row"},
    el("button", {type: "button", onclick: (event) => { event.stopPropagation(); use(flagsOf(e.plan)); }}, "Use"),
    el("button", {type: "button", onclick: (event) => { event.stopPropagation(); keep(flagsOf(e.plan)); }}, "Compare"))};
  const holder = el("div");
  const fill = () => holder.replaceChildren(table([...columns, actions], filtered(best, filter),
    {caption: "the best plan of each combination of degrees", rowclass: (e) => e === best[0] ? "best" : null}));
  fill();
  const s = answer.space;
  const front = (answer.front ?? []).map(row);
  const points = [...best.map((e) => ({x: e.step_time_s, y: e.memory_B.total, label: e.label, group: "best plans", e})),
    ...front.map((e) => ({x: e.step_time_s, y: e.memory_B.total, label: e.label, group: "no plan is faster with less memory", e}))];
  return [
    el("p", {}, `${f.grouped(s.points)} points: ${f.grouped(s.evaluated)} evaluated, ${f.grouped(s.pruned)} pruned by a bound; ${f.grouped(s.feasible)} fit. The best plan is exact within the space and the cost model.`),
    el("div", {class: "row"}, el("label", {for: "plan-filter"}, "Filter"),
      el("input", {id: "plan-filter", value: filter, placeholder: "tp 8 interleaved", oninput: (event) => { filter = event.target.value; fill(); }})),
    holder,
    el("h2", {}, "Time against memory"),
    scatter("Step time against memory of plans", points, {x: "step time", y: "memory per device", xFormat: f.seconds, yFormat: f.bytes, onpoint: (p) => use(flagsOf(p.e.plan))}),
    ...(answer.explanation ?? []).length ? [el("h2", {}, "Why this plan"), el("ul", {class: "notes"}, ...answer.explanation.map((line) => el("li", {}, line)))] : [],
    ...(answer.not_searched ?? []).length ? [el("h2", {}, "Not searched (fixed; set with the flag in brackets)"), el("p", {class: "hint"}, answer.not_searched.join("; "))] : [],
  ];
};

export const show = (box, body, {use, keep}) => {
  const redraw = () => { if (box.isConnected && box.dataset.view === "plan") show(box, body, {use, keep}); };
  const current = search && search.key === JSON.stringify(body) ? search : null;
  const running = current?.running;
  const button = el("button", {type: "button", class: "primary", id: "search", disabled: running, onclick: () => start(body, redraw)}, "Search all plans");
  const stop = el("button", {type: "button", disabled: !running, onclick: cancel}, "Cancel");
  const p = current?.progress;
  const bar = running ? el("progress", {max: p?.all ?? 1, value: p?.done, "aria-label": "search"}) : null;
  const told = running && p ? `${f.grouped(p.done)} of ${f.grouped(p.all)} ${p.unit}` : "";
  const nothing = current?.answer && current.answer.best.length === 0;
  box.replaceChildren(
    el("p", {class: "hint"}, "The exact search over the plan fields that are empty; fields that are set are fixed. Several values are possible: 4,8 or 1..16."),
    el("div", {class: "row"}, button, stop, bar, told),
    ...(current?.error ? [el("p", {class: "worse"}, current.error)] : []),
    ...(nothing ? [el("p", {class: "worse"}, `No plan fits. ${current.answer.nearest?.sentence ?? ""}`)] : []),
    ...(current?.answer && !nothing ? results(current.answer, use, keep) : []));
};
