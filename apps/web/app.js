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
import * as study from "./view_study.js";
import * as whatIf from "./view_whatif.js";

const kViews = {estimate: "Estimate", plan: "Search plans", compare: "Compare", pipeline: "Timeline", whatif: "What if", study: "Study"};

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

const open = (view) => { state.view = view; showTabs(); changed(); };

const planNames = ["tp", "cp", "pp", "ep", "etp", "dp", "vpp", "micro-batch", "zero", "recompute", "schedule", "sequence-parallel", "tp-overlap"];
const planFlags = () => Object.fromEntries(planNames.map((name) => [name, state.flags[name] ?? ""]));
const keep = (flags) => { state.kept.push(flags); state.view = "compare"; showTabs(); changed(); };
const use = (flags) => { state.flags = {...state.flags, ...flags}; state.view = "estimate"; rebuild(); changed(); };
const rebuild = () => { showTabs(); form.build(commands.estimate.flags, lists, state, changed, report); form.buildFigures(entry, state, changed); };

const body = (command, factors) => states.request(state, commands[command], entry, factors);

const showCommands = () => {
  const name = {plan: "plan", pipeline: "simulate"}[state.view] ?? "estimate";
  const request = body(name);
  $("command-line").value = states.commandLine(name, request);
  $("scenario").value = states.scenario(request);
  const changedCluster = typeof request.cluster === "object";
  $("cluster-file").hidden = !changedCluster;
  $("cluster-text").value = changedCluster ? JSON.stringify(request.cluster, null, 2) : "";
  if ($("launcher").open) showLauncher();
};

const showLauncher = async () => {
  try {
    $("emit-text").value = (await call("estimate", {...body("estimate"), emit: $("emit-tool").value})).text;
  } catch (error) { $("emit-text").value = error.message; }
};

const showView = async (signal) => {
  const box = $("view");
  if (box.dataset.view !== state.view) { charts.clear(); box.replaceChildren(); box.dataset.view = state.view; }
  if (state.view === "estimate") {
    const answer = await call("estimate", body("estimate"), signal);
    charts.clear();
    estimate.show(box, answer);
  } else if (state.view === "plan") {
    plan.show(box, body("plan"), {use, keep});
  } else if (state.view === "compare") {
    const common = body("estimate");
    const bodies = state.kept.map((flags) => {
      const one = {...common};
      for (const name of planNames) delete one[name];
      return states.request({...state, flags: {...state.flags, ...Object.fromEntries(planNames.map((n) => [n, ""])), ...flags}}, commands.estimate, entry);
    });
    charts.clear();
    await compare.show(box, bodies, {use: (i) => use(state.kept[i]), remove: (i) => { state.kept.splice(i, 1); changed(); }}, signal);
  } else if (state.view === "whatif") {
    if (!entry) { box.replaceChildren(el("p", {class: "hint"}, "Choose a cluster first.")); return; }
    if (!$("what-if-answer")) whatIf.show(box, entry, state, changed);
    charts.clear();
    await whatIf.answer($("what-if-answer"), body("estimate", {}), body("estimate"), signal);
  } else if (state.view === "study") {
    study.show(box, studyName);
  } else {
    pipeline.show(box, body("simulate"));
  }
};

let timer = null;
// `all`: fields of the form have changed, too. Keystrokes that follow each other closely are one change.
const changed = (all = false) => {
  clearTimeout(timer);
  timer = setTimeout(() => update(all), state.view === "whatif" ? 0 : 120);
};

const update = async (all) => {
  form.forgetOtherTask(state);
  const address = states.write(state);
  if (location.hash.slice(1) !== address) history.replaceState(null, "", `#${address}`);
  asked?.abort();
  asked = new AbortController();
  const mine = asked;
  $("status").textContent = "…";
  try {
    const before = entry?.name;
    entry = state.flags.cluster ? await described(state.flags.cluster).catch(() => null) : null;
    if (all) rebuild();
    else if (before !== entry?.name) form.buildFigures(entry, state, changed);
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
  commands = Object.fromEntries(answer.commands.map((c) => [c.name, c]));
  studyName = answer.study ?? "";
  const names = await Promise.all(["models", "clusters", "stacks"].map((kind) => call("list", {kind}).then((a) => a.entries)));
  lists = {model: names[0], cluster: names[1], stack: names[2]};
  const tools = commands.estimate.flags.find((f) => f.name === "emit")?.choices ?? [];
  $("emit-tool").replaceChildren(...tools.map((tool) => el("option", {value: tool}, tool)));
  state = states.read(location.hash.slice(1));
  if (!(state.view in kViews) || (state.view === "study" && !studyName)) state.view = "estimate";
  form.acceptDrops(() => state, changed, report);
  entry = state.flags.cluster ? await described(state.flags.cluster).catch(() => null) : null;
  rebuild();
  $("job").addEventListener("submit", (e) => e.preventDefault());
  $("reset").addEventListener("click", () => { state = states.defaults(); rebuild(); changed(true); });
  $("figures-reset").addEventListener("click", () => { state.figures = {}; form.buildFigures(entry, state, changed); changed(); });
  $("launcher").addEventListener("toggle", () => { if ($("launcher").open) showLauncher(); });
  $("emit-tool").addEventListener("change", showLauncher);
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
  window.addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== states.write(state)) { state = states.read(location.hash.slice(1)); rebuild(); changed(true); }
  });
  await update(false);
};

start().catch((error) => report(`The page cannot be started: ${error.message}`));
