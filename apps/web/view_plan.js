// The search: progress, the best plans as a table, two measures of plans against each other, plans to compare.
import {el, table} from "./dom.js";
import * as f from "./format.js";
import * as pareto from "./pareto.js";
import {controls, searches} from "./search.js";
import {planText} from "./view_estimate.js";

const kPlanFlags = ["tp", "cp", "pp", "ep", "etp", "dp", "vpp", "micro_batch", "zero", "recompute", "schedule", "sequence_parallel", "tp_overlap"];
// Flags of the search itself.
export const kSearchFlags = ["device-counts", "objective", "within", "headroom", "space"];
const kSpaces = ["default", "wide"];

// The flags of `orrery estimate` that mean a plan that was found.
export const flagsOf = (e) => ({devices: String(e.devices),
  ...Object.fromEntries(kPlanFlags.map((key) => [key.replaceAll("_", "-"), String(e.plan[key])]))});

// What the page asks for more than the command line shows, which says the same with --top 30 --pareto --explain.
export const asked = (body) => ({...body, top: 30, pareto: true, explain: true});

const search = searches("plan");

const measures = {
  time: {title: "step time", value: (e) => e.step_time_s, format: f.seconds},
  memory: {title: "memory per device", value: (e) => e.memory_B.total, format: f.bytes},
  devices: {title: "devices", value: (e) => e.devices, format: f.grouped},
  cost: {title: "cost per step", value: (e) => e.cost_usd_per_step ?? NaN, format: f.dollars},
  energy: {title: "energy per step", value: (e) => e.energy_J_per_step ?? NaN, format: f.joules},
};
// With a price and a power per device and second, a plan that is beaten in time, memory and devices is beaten in cost
// and energy, too: the front of the three has a plan for each point of the front of any two of the five.
const kNote = "Plans on the front of time, memory and devices, and the best ones. Cost and energy follow from time and devices, so the front of any two is complete.";

const row = (e) => ({...e, label: planText(e.plan)});

const columns = (rows) => [
  {title: "step", text: (e) => f.seconds(e.step_time_s), value: (e) => e.step_time_s},
  ...new Set(rows.map((e) => e.devices)).size > 1 ? [{title: "devices", text: (e) => f.grouped(e.devices), value: (e) => e.devices}] : [],
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
  const names = (e) => `${e.label} cp ${e.plan.cp} ep ${e.plan.ep} vpp ${e.plan.vpp} devices ${e.devices}`.toLowerCase();
  // "tp 8" or "tp8" or "interleaved"
  return rows.filter((e) => {
    const flat = ` ${names(e).replaceAll(",", " ")} `;
    return wanted.join(" ").match(/[a-z-]+ ?\d+|[a-z0-9-]+/g)?.every((part) => {
      const pair = part.match(/^([a-z-]+) ?(\d+)$/);
      return pair && !/^\d/.test(part) ? flat.includes(` ${pair[1].replace("-", " ")} ${pair[2]} `) : flat.includes(part);
    }) ?? true;
  });
};

const bestTable = (best, ui, {use, keep, remember}) => {
  const actions = {title: "", left: true, text: (e) => el("span", {class: "row"},
    el("button", {type: "button", onclick: (event) => { event.stopPropagation(); use(flagsOf(e)); }}, "Use"),
    el("button", {type: "button", onclick: (event) => { event.stopPropagation(); keep(flagsOf(e)); }}, "Compare"))};
  const holder = el("div");
  const shown = columns(best);
  const fill = () => {
    const at = shown.findIndex((c) => c.title === ui.sort?.replace(/^-/, ""));
    holder.replaceChildren(table([...shown, actions], filtered(best, ui.filter ?? ""), {
      caption: "the best plan of each combination of degrees", rowclass: (e) => e === best[0] ? "best" : null,
      sort: at < 0 ? null : {column: at, down: ui.sort.startsWith("-")},
      onsort: ({column, down}) => { ui.sort = `${down ? "-" : ""}${shown[column].title}`; remember(); }}));
  };
  fill();
  return [
    el("div", {class: "row"}, el("label", {for: "plan-filter"}, "Filter"),
      el("input", {id: "plan-filter", value: ui.filter ?? "", placeholder: "tp 8 interleaved", oninput: (event) => { ui.filter = event.target.value; fill(); remember(); }})),
    holder];
};

const results = (answer, ui, acts, again) => {
  const best = answer.best.map(row);
  const s = answer.space;
  const known = new Set(best.map((e) => JSON.stringify([e.devices, e.plan])));
  const others = (answer.front ?? []).map(row).filter((e) => !known.has(JSON.stringify([e.devices, e.plan])));
  return [
    el("p", {}, `${f.grouped(s.points)} points: ${f.grouped(s.evaluated)} evaluated, ${f.grouped(s.pruned)} pruned by a bound; ${f.grouped(s.feasible)} fit. The best plan is exact within the space and the cost model.`),
    ...bestTable(best, ui, acts),
    el("h2", {}, "One measure against another"),
    ...pareto.chart([...best, ...others], measures, ui, {fallback: {x: "time", y: "memory"}, note: kNote,
      changed: (id) => { acts.remember(); again(); document.getElementById(id)?.focus(); }, onpoint: (e) => acts.use(flagsOf(e))}),
    ...(answer.explanation ?? []).length ? [el("h2", {}, "Why this plan"), el("ul", {class: "notes"}, ...answer.explanation.map((line) => el("li", {}, line)))] : [],
    ...(answer.not_searched ?? []).length ? [el("h2", {}, "Not searched (fixed; set with the flag in brackets)"), el("p", {class: "hint"}, answer.not_searched.join("; "))] : [],
  ];
};

// Fields of the search: several numbers of devices, what the best has least of, limits.
const searchFields = (command, flags, changed) => el("div", {class: "row", id: "search-fields"}, ...kSearchFlags.map((name) => {
  const flag = command.flags.find((one) => one.name === name);
  if (!flag) return null;
  const id = `search-${name}`, value = flags[name] ?? "";
  const set = (e) => { flags[name] = e.target.value.trim(); changed(id); };
  const choices = name === "space" ? kSpaces : flag.choices;
  return el("span", {class: "small-field"}, el("label", {for: id}, name), choices.length
    ? el("select", {id, class: "short", title: flag.doc, onchange: set}, ...["", ...choices].map((c) => el("option", {value: c, selected: c === value}, c === "" ? "–" : c)))
    : el("input", {id, class: "short", title: flag.doc, value, spellcheck: "false", placeholder: name === "device-counts" ? "64:1024:x2" : "", onchange: set}));
}));

// acts: {use(flags), keep(flags), remember(), changed()}; ui: what is chosen in this view; flags: the fields of the job.
export const show = (box, body, command, flags, ui, acts) => {
  const again = () => { if (box.isConnected && box.dataset.view === "plan") show(box, body, command, flags, ui, acts); };
  const request = asked(body);
  const start = () => { ui.searched = "1"; acts.remember(); search.start(request, again); };
  const current = search.of(request);
  if (ui.searched && !current) { queueMicrotask(() => { if (!search.of(request)) search.start(request, again); }); }
  const nothing = current?.answer && current.answer.best.length === 0;
  const cancel = () => { delete ui.searched; acts.remember(); search.cancel(); };
  box.replaceChildren(
    el("p", {class: "hint"}, "The exact search over the plan fields that are empty; fields that are set are fixed. Several values are possible: 4,8 or 1..16."),
    searchFields(command, flags, () => { delete ui.searched; acts.changed(); }),
    controls(current, {title: "Search all plans", start, cancel}),
    ...(current?.error ? [el("p", {class: "worse"}, current.error)] : []),
    ...(nothing ? [el("p", {class: "worse"}, `No plan fits. ${current.answer.nearest?.sentence ?? ""}`)] : []),
    ...(current?.answer && !nothing ? results(current.answer, ui, acts, again) : []));
};
