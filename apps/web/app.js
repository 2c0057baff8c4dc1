// The page: what is set (state.js) is asked at once, and shown in the view that is open.
import {call, described} from "./api.js";
import * as charts from "./charts.js";
import {$, el} from "./dom.js";
import * as form from "./form.js";
import * as states from "./state.js";
import * as compare from "./view_compare.js";
import * as estimate from "./view_estimate.js";
import * as pipeline from "./view_pipeline.js";
import * as plan from "./view_plan.js";
import * as serve from "./view_serve.js";
import * as study from "./view_study.js";
import * as whatIf from "./view_whatif.js";

const kViews = {estimate: "Estimate", plan: "Search plans", serve: "Serving", compare: "Compare", pipeline: "Timeline", whatif: "What if", study: "Study"};

let state = states.defaults();
let commands = {};
let studyName = "";  // of the study that the server shows; empty: none
let lists = {};
let entry = null;  // the description of the cluster
let asked = null;  // the request that is being answered

const report = (text) => {
  $("error").textContent = text;
  $("error").hidden = text === "";
};

const showTabs = () => {
  const names = Object.keys(kViews).filter((name) => name !== "study" || studyName);
  $("tabs").replaceChildren(...names.map((name, i) => el("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(state.view === name), "aria-controls": "view",
    tabindex: state.view === name ? "0" : "-1",
    onclick: () => open(name),
    onkeydown: (e) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
      if (step) { open(names[(i + step + names.length) % names.length]); $(`tab-${state.view}`).focus(); }
    }}, kViews[name])), el("button", {type: "button", id: "keep", onclick: () => keep(planFlags())}, "Keep for comparison"));
  $("view").setAttribute("aria-labelledby", `tab-${state.view}`);
};

const open = (view) => {
  const other = (state.view === "serve") !== (view === "serve");
  state.view = view;
  if (other) rebuild(); else showTabs();
  changed();
};

const planNames = ["devices", "tp", "cp", "pp", "ep", "etp", "dp", "vpp", "micro-batch", "zero", "recompute", "schedule", "sequence-parallel", "tp-overlap"];
const planFlags = () => Object.fromEntries(planNames.map((name) => [name, state.flags[name] ?? ""]));
const keep = (flags) => { state.kept.push(flags); state.view = "compare"; rebuild(); changed(); };
const use = (flags) => {
  state.flags = {...state.flags, ...flags};
  delete state.flags["device-counts"];
  state.ui = {};
  state.view = "estimate";
  rebuild();
  changed();
};
const useDeployment = (flags) => { Object.assign(state.serve, flags); delete states.chosen(state, "serve").searched; rebuild(); changed(); };
const formFlags = () => state.view === "serve" ? commands["plan serve"].flags : commands.estimate.flags;
const rebuild = () => {
  if (state.view === "serve" && Object.keys(state.serve).length === 0) state.serve = {...serve.defaults};
  showTabs();
  form.build(formFlags(), lists, state, edited, report);
  form.buildFigures(entry, state, edited);
};

const body = (command, factors) => states.request(state, commands[command], entry, factors);
const serveBody = () => states.serveRequest(state, commands["plan serve"], entry);

// The plans to compare: the request of the first, and --against for each other one.
const kept = () => {
  if (state.kept.length === 0) return {first: null, others: []};
  const [first, ...others] = state.kept;
  const job = {...state, flags: {...state.flags, ...first}};
  return {first: states.request(job, commands.estimate, entry), others: others.map((flags) => compare.against(flags, first))};
};

// The command that says the same as the view, and its request.
const shownCommand = () => {
  if (state.view === "serve") return ["plan", serve.asked(serveBody())];
  if (state.view === "plan") return ["plan", plan.asked(body("plan"))];
  if (state.view === "pipeline") return ["simulate", body("simulate")];
  if (state.view !== "compare" || state.kept.length === 0) return ["estimate", body("estimate")];
  const {first, others} = kept();
  return ["estimate", others.length ? {...first, against: others[0]} : first];
};

// The fields of a scenario file: those of the job or of the fleet, not those of a search.
const scenarioBody = () => {
  if (state.view === "compare" && state.kept.length > 0) return kept().first;
  if (state.view !== "serve") return body("estimate");
  const ofSearch = new Set(commands["plan serve"].flags.filter((flag) => flag.group === "The search").map((flag) => flag.name));
  return Object.fromEntries(Object.entries(serveBody()).filter(([name]) => !ofSearch.has(name)));
};

const showCommands = () => {
  const [name, request] = shownCommand();
  $("command-line").value = states.commandLine(name, request);
  $("scenario").value = states.scenario(scenarioBody());
  const changedCluster = typeof request.cluster === "object";
  $("cluster-file").hidden = !changedCluster;
  $("cluster-text").value = changedCluster ? JSON.stringify(request.cluster, null, 2) : "";
  showTools();
  if ($("launcher").open) showLauncher();
};

// The programs that --emit of the shown command writes for.
const showTools = () => {
  const command = state.view === "serve" ? "plan serve" : "estimate";
  if ($("emit-tool").dataset.command === command) return;
  const tools = commands[command].flags.find((f) => f.name === "emit")?.choices ?? [];
  $("emit-tool").dataset.command = command;
  $("emit-tool").replaceChildren(...tools.map((tool) => el("option", {value: tool}, tool)));
};

let emitted = null;  // the request for the launcher's text
const showLauncher = async () => {
  emitted?.abort();
  const mine = emitted = new AbortController();
  const tool = $("emit-tool").value;
  $("emit-text").value = state.view === "serve" ? "Searching …" : "";
  let text = "";
  try {
    text = state.view === "serve" ? await serve.launcher(serveBody(), tool, mine.signal)
      : (await call("estimate", {...body("estimate"), emit: tool}, mine.signal)).text;
  } catch (error) { text = error.message; }
  if (emitted === mine) $("emit-text").value = text;
};

// What views do to the page.
const acts = {use, keep, remember: () => remember(), changed: () => changed()};

const showView = async (signal) => {
  const box = $("view");
  if (box.dataset.view !== state.view) { charts.clear(); box.replaceChildren(); box.dataset.view = state.view; }
  if (state.view === "estimate") {
    const answer = await call("estimate", body("estimate"), signal);
    charts.clear();
    estimate.show(box, answer);
  } else if (state.view === "plan") {
    plan.show(box, body("plan"), commands.plan, state.flags, states.chosen(state, "plan"), acts);
  } else if (state.view === "serve") {
    serve.show(box, serveBody(), states.chosen(state, "serve"), {...acts, use: useDeployment});
  } else if (state.view === "compare") {
    const {first, others} = kept();
    charts.clear();
    await compare.show(box, first, others, {use: (i) => use(state.kept[i]), remove: (i) => { state.kept.splice(i, 1); changed(); },
      first: (i) => { state.kept.unshift(...state.kept.splice(i, 1)); changed(); }}, signal);
  } else if (state.view === "whatif") {
    if (!entry) { box.replaceChildren(el("p", {class: "hint"}, "Choose a cluster first.")); return; }
    if (!$("what-if-answer")) whatIf.show(box, entry, state, edited);
    charts.clear();
    await whatIf.answer($("what-if-answer"), body("estimate", {}), body("estimate"), signal);
  } else if (state.view === "study") {
    study.show(box, studyName);
  } else {
    pipeline.show(box, body("simulate"), body("estimate"));
  }
};

let timer = null;
// `all`: fields of the form have changed, too. Keystrokes that follow each other closely are one change.
const changed = (all = false) => {
  clearTimeout(timer);
  timer = setTimeout(() => update(all), state.view === "whatif" ? 0 : 120);
};

// A field of the form: another search, which is not started by itself.
const edited = (all = false) => {
  for (const view of ["plan", "serve"]) delete states.chosen(state, view).searched;
  changed(all);
};

// The address says what is shown.
const remember = () => {
  const address = states.write(state);
  if (location.hash.slice(1) !== address) history.replaceState(null, "", `#${address}`);
};

const update = async (all) => {
  form.forgetOtherTask(state);
  remember();
  asked?.abort();
  asked = new AbortController();
  const mine = asked;
  $("status").textContent = "…";
  try {
    const before = entry?.name;
    entry = state.flags.cluster ? await described(state.flags.cluster).catch(() => null) : null;
    if (all) rebuild();
    else if (before !== entry?.name) form.buildFigures(entry, state, edited);
    if (document.activeElement?.id === "flag-task") { rebuild(); $("flag-task").focus(); }
    showCommands();
    await showView(mine.signal);
    report("");
  } catch (error) {
    if (error.name !== "AbortError") report(error.message);
  } finally {
    if (asked === mine) { $("status").textContent = ""; document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1); }
  }
};

const copy = async (button) => {
  const text = $(button.dataset.copy);
  try { await navigator.clipboard.writeText(text.value); }
  catch { text.select(); document.execCommand("copy"); }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
};

const start = async () => {
  const answer = await (await fetch("api")).json();
  commands = Object.fromEntries(answer.commands.map((c) => [c.task ? `${c.name} ${c.task}` : c.name, c]));
  studyName = answer.study ?? "";
  const names = await Promise.all(["models", "clusters", "stacks"].map((kind) => call("list", {kind}).then((a) => a.entries)));
  lists = {model: names[0], cluster: names[1], stack: names[2]};
  state = states.read(location.hash.slice(1));
  if (!(state.view in kViews) || (state.view === "study" && !studyName)) state.view = "estimate";
  form.acceptDrops(() => state, edited, report);
  entry = state.flags.cluster ? await described(state.flags.cluster).catch(() => null) : null;
  rebuild();
  $("job").addEventListener("submit", (e) => e.preventDefault());
  $("reset").addEventListener("click", () => { state = states.defaults(); rebuild(); changed(true); });
  $("figures-reset").addEventListener("click", () => { state.figures = {}; form.buildFigures(entry, state, edited); edited(); });
  $("launcher").addEventListener("toggle", () => { if ($("launcher").open) showLauncher(); });
  $("emit-tool").addEventListener("change", showLauncher);
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
  window.addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== states.write(state)) { state = states.read(location.hash.slice(1)); rebuild(); changed(true); }
  });
  await update(false);
};

start().catch((error) => report(`The page cannot be started: ${error.message}`));
