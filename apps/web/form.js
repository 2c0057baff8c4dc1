// The fields of the page, made from the flags of the command line.
import {$, el} from "./dom.js";
import {at} from "./state.js";

// Which flags are in which part of the form, for a job and for a fleet that serves. Others are under "All other flags".
const kJob = {
  work: ["model", "task", "global-batch", "seq", "prompt", "generate", "batch", "precision"],
  machine: ["cluster", "devices", "stack"],
  plan: ["tp", "pp", "cp", "ep", "dp", "vpp", "micro-batch", "zero", "recompute", "schedule", "sequence-parallel", "tp-overlap"],
  hidden: ["scenario", "set", "timeline", "terms", "emit", "semantics", "strategy", "local-batch", "against"],
  legend: "Plan", hint: "An empty field is chosen for the shortest step that fits.",
};
const kServing = {
  work: ["model", "isl", "osl", "slo", "precision", "kv-format"],
  machine: ["cluster", "devices", "engine"],
  plan: ["tp", "pp", "ep", "attention-dp", "max-batched-tokens", "max-sequences", "pools", "objective"],
  hidden: ["task", "trace", "trace-speed", "trace-block-tokens", "rate", "concurrency", "top", "emit", "explain"],
  legend: "Deployment", hint: "An empty field is searched; several values are possible: 4,8.",
};
const kOfTraining = ["global-batch", "seq"], kOfInference = ["prompt", "generate", "batch"];

// "kind of job (pretrain, finetune, inference) [default pretrain]" -> the names in brackets.
const choicesOf = (flag) => {
  if (flag.choices.length) return flag.choices;
  const listed = flag.value === "NAME" && flag.doc.match(/\(([a-z0-9-]+(?:, [a-z0-9-]+)+)\)/);
  return listed ? listed[1].split(", ") : [];
};

// Where a flag's value is: a fleet has the model and the cluster of the job, and other flags of its own.
const valuesOf = (name, state) => state.view === "serve" && name !== "model" && name !== "cluster" ? state.serve : state.flags;

const control = (flag, state, changed) => {
  const id = `flag-${flag.name}`;
  const values = valuesOf(flag.name, state);
  const value = values[flag.name] ?? "";
  const set = (text) => { values[flag.name] = text; changed(); };
  const choices = flag.kind === "toggle" ? ["true", "false"] : choicesOf(flag);
  if (choices.length && flag.name !== "model" && flag.name !== "cluster" && flag.name !== "stack" && flag.name !== "engine") {
    const options = ["", ...choices].map((choice) => el("option", {value: choice, selected: choice === value},
      choice === "" ? "–" : choice === "true" ? "on" : choice === "false" ? "off" : choice));
    return el("select", {id, title: flag.doc, onchange: (e) => set(e.target.value)}, ...options);
  }
  return el("input", {id, value, title: flag.doc, list: flag.value.startsWith("NAME|FILE") ? `names-${flag.name}` : null,
    placeholder: "", spellcheck: "false", oninput: (e) => set(e.target.value.trim())});
};

const field = (flag, state, changed, wide = false) => el("div", {class: wide ? "field wide" : "field", "data-flag": flag.name},
  el("label", {for: `flag-${flag.name}`}, flag.name), control(flag, state, changed));

const ordered = (flags, names) => names.map((name) => flags.find((f) => f.name === name)).filter(Boolean);

// Fields that the task does not have are hidden.
const showFor = (task) => {
  for (const name of kOfTraining) document.querySelector(`[data-flag="${name}"]`)?.toggleAttribute("hidden", task === "inference");
  for (const name of kOfInference) document.querySelector(`[data-flag="${name}"]`)?.toggleAttribute("hidden", task !== "inference");
};

export const forgetOtherTask = (state) => {
  for (const name of state.flags.task === "inference" ? kOfTraining : kOfInference) delete state.flags[name];
};

const readDocument = async (file, state, changed, report) => {
  try {
    const document = JSON.parse(await file.text());
    if (typeof document !== "object" || document === null || Array.isArray(document)) throw new Error("it is no JSON object");
    state.document = document;
    state.flags.model = "";
    changed(true);
  } catch (error) { report(`${file.name}: ${error.message}`); }
};

const modelExtras = (state, changed, report) => {
  const input = el("input", {type: "file", accept: ".json,application/json", id: "model-file", hidden: true,
    onchange: (e) => { if (e.target.files.length) readDocument(e.target.files[0], state, changed, report); }});
  const note = state.document
    ? el("p", {class: "hint"}, `model: config.json (${state.document.model_type ?? "of a file"}) `,
        el("button", {type: "button", onclick: () => { state.document = null; state.flags.model = "llama-3.1-8b"; changed(true); }}, "Remove"))
    : el("p", {class: "hint"}, "or ", el("button", {type: "button", onclick: () => input.click()}, "open a config.json"), " (or drop it here)");
  return [input, note];
};

export const build = (flags, lists, state, changed, report) => {
  const parts = state.view === "serve" ? kServing : kJob;
  $("plan").querySelector("legend").textContent = parts.legend;
  $("plan").querySelector(".hint").textContent = parts.hint;
  for (const id of ["work", "machine", "plan"]) {
    const box = $(id);
    box.querySelectorAll(".field, .fields, .extra").forEach((old) => old.remove());
    const fields = ordered(flags, parts[id]).map((flag) => field(flag, state, changed));
    if (id === "plan") box.append(el("div", {class: "fields"}, ...fields));
    else box.append(...fields);
    if (id === "work") box.append(el("div", {class: "extra"}, ...modelExtras(state, changed, report)));
  }
  const shown = new Set([...parts.work, ...parts.machine, ...parts.plan, ...parts.hidden]);
  $("more-fields").replaceChildren(...flags.filter((f) => !shown.has(f.name)).map((flag) => field(flag, state, changed)));
  for (const [kind, entries] of Object.entries(lists)) {
    const id = `names-${kind}`;
    document.getElementById(id)?.remove();
    document.body.append(el("datalist", {id}, ...entries.map((e) => el("option", {value: e.name}, e.description ?? ""))));
  }
  if (state.view !== "serve") showFor(state.flags.task);
};

export const acceptDrops = (state, changed, report) => {
  const box = $("work");
  box.addEventListener("dragover", (e) => { e.preventDefault(); box.classList.add("drop"); });
  box.addEventListener("dragleave", () => box.classList.remove("drop"));
  box.addEventListener("drop", (e) => {
    e.preventDefault();
    box.classList.remove("drop");
    if (e.dataTransfer.files.length) readDocument(e.dataTransfer.files[0], state(), changed, report);
  });
};

// Paths of the figures of a cluster's description that can be changed in place.
const kDescriptive = new Set(["name", "description", "maker", "sources", "basis", "wiring", "protocols", "host", "most"]);
export const figurePaths = (node, prefix = "") => Object.entries(node).flatMap(([key, value]) => {
  if (kDescriptive.has(key)) return [];
  const path = prefix === "" ? key : `${prefix}.${key}`;
  if (value !== null && typeof value === "object") return figurePaths(value, path);
  return typeof value === "number" || /^[0-9]/.test(String(value)) ? [path] : [];
});

export const figureTitle = (entry, path) => {
  const parts = path.split(".");
  if (parts[0] === "dimensions") parts.splice(0, 2, entry.dimensions[Number(parts[1])]?.name ?? parts[1]);
  return parts.join(" ").replaceAll("_", " ");
};

export const buildFigures = (entry, state, changed) => {
  const rows = entry === null ? [] : figurePaths(entry).map((path) => {
    const id = `figure-${path}`;
    return el("div", {class: "field wide"}, el("label", {for: id}, figureTitle(entry, path)),
      el("input", {id, value: state.figures[path] ?? "", placeholder: String(at(entry, path)), spellcheck: "false", oninput: (e) => {
        const text = e.target.value.trim();
        if (text === "") delete state.figures[path];
        else state.figures[path] = text;
        changed();
      }}));
  });
  $("figure-fields").replaceChildren(...rows);
};
