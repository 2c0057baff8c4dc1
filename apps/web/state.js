// All that is set on the page. Its text form is the part of the address after #.
//
//   flags    of the command line without dashes, as text: {model: "llama-3.1-8b", devices: "64"}
//   figures  of the cluster that differ from the catalogue: {"dimensions.0.bandwidth": "800 Gb/s"}
//   factors  what-if: {"accelerator.memory_bandwidth": 1.5, devices: 2}
//   document a model that is no entry of the catalogue: the content of a config.json
//   view     which tab is shown
//   kept     plans to compare, as flags
//   serve    flags of `plan --task serve` other than model and cluster: {isl: "2048"}
//   ui       what is chosen inside a view: {plan: {searched: "1", x: "cost"}}
const empty = () => ({figures: {}, factors: {}, document: null, view: "estimate", kept: [], serve: {}, ui: {}});

export const defaults = () => ({
  flags: {model: "llama-3.1-8b", cluster: "dgx-h100", devices: "64", task: "pretrain", "global-batch": "512", seq: "8192"},
  ...empty(),
});

// What is chosen inside a view.
export const chosen = (state, view) => state.ui[view] ??= {};

const pack = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));
const unpack = (text) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))));

export const write = (state) => {
  const parts = new URLSearchParams();
  parts.set("view", state.view);
  for (const [name, value] of Object.entries(state.flags)) if (value !== "") parts.set(name, value);
  for (const [path, value] of Object.entries(state.figures)) parts.set(`figure.${path}`, value);
  for (const [path, value] of Object.entries(state.factors)) if (value !== 1) parts.set(`factor.${path}`, value);
  if (state.document) parts.set("document", pack(state.document));
  for (const plan of state.kept) parts.append("keep", pack(plan));
  for (const [name, value] of Object.entries(state.serve)) if (value !== "") parts.set(`serve.${name}`, value);
  for (const [view, choices] of Object.entries(state.ui)) {
    for (const [name, value] of Object.entries(choices)) if (value !== "") parts.set(`ui.${view}.${name}`, value);
  }
  return parts.toString();
};

export const read = (text) => {
  if (text === "") return defaults();
  const state = {flags: {}, ...empty()};
  for (const [name, value] of new URLSearchParams(text)) {
    if (name === "view") state.view = value;
    else if (name.startsWith("figure.")) state.figures[name.slice(7)] = value;
    else if (name.startsWith("factor.")) state.factors[name.slice(7)] = Number(value) || 1;
    else if (name === "document") state.document = unpack(value);
    else if (name === "keep") state.kept.push(unpack(value));
    else if (name.startsWith("serve.")) state.serve[name.slice(6)] = value;
    else if (/^ui\.(plan|serve)\.[a-z]+$/.test(name)) chosen(state, name.split(".")[1])[name.split(".")[2]] = value;
    else state.flags[name] = value;
  }
  return state;
};

// Value at "dimensions.0.bandwidth".
export const at = (node, path) => path.split(".").reduce((inner, key) => inner?.[key], node);

export const put = (node, path, value) => {
  const keys = path.split(".");
  const last = keys.pop();
  const inner = keys.reduce((outer, key) => outer?.[key], node);
  if (inner !== undefined && inner !== null && typeof inner === "object") inner[last] = value;
};

// "450 GB/s" times 1.5 is "675 GB/s"; a mapping is scaled in all its values.
export const times = (value, factor) => {
  if (typeof value === "number") return value * factor;
  if (typeof value === "string") {
    const parts = value.match(/^([0-9.eE+-]+)(.*)$/);
    return parts ? `${Number((Number(parts[1]) * factor).toPrecision(12))}${parts[2]}` : value;
  }
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, times(inner, factor)]));
  }
  return value;
};

// The cluster as the request has it: a name, or the catalogue's description with the changes.
export const cluster = (state, entry, all = state.factors) => {
  const {devices: _, ...factors} = all;
  const changed = Object.keys(state.figures).length > 0 || Object.values(factors).some((f) => f !== 1);
  if (!changed || !entry) return state.flags.cluster ?? "";
  const copy = structuredClone(entry);
  copy.name = `${entry.name}-changed`;
  for (const [path, value] of Object.entries(state.figures)) put(copy, path, typeof at(copy, path) === "number" ? Number(value) : value);
  for (const [path, factor] of Object.entries(factors)) put(copy, path, times(at(copy, path), factor));
  return copy;
};

const typed = (name, value, flags) => {
  const flag = flags.find((f) => f.name === name);
  if (flag?.kind === "toggle") return value === "true";
  return value;
};

// The body of a request: only flags that the command has.
export const request = (state, command, entry, factors = state.factors) => {
  const body = {};
  for (const [name, value] of Object.entries(state.flags)) {
    if (value !== "" && command.flags.some((f) => f.name === name)) body[name] = typed(name, value, command.flags);
  }
  if (body["device-counts"]) delete body.devices;
  else if ((factors.devices ?? 1) !== 1 && body.devices) body.devices = String(Math.round(Number(body.devices) * factors.devices));
  return placed(body, state, entry, factors);
};

// Model and cluster, which may be documents.
const placed = (body, state, entry, factors) => {
  if (state.document) body.model = state.document;
  body.cluster = cluster(state, entry, factors);
  if (body.cluster === "") delete body.cluster;
  return body;
};

// The body of `plan --task serve`.
export const serveRequest = (state, command, entry) => {
  const body = {task: "serve"};
  if (state.flags.model) body.model = state.flags.model;
  for (const [name, value] of Object.entries(state.serve)) {
    if (value !== "" && command.flags.some((f) => f.name === name)) body[name] = typed(name, value, command.flags);
  }
  return placed(body, state, entry, state.factors);
};

const quoted = (text) => /^[A-Za-z0-9_.,:=/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

export const commandLine = (name, body) => {
  const words = [`orrery ${name}`];
  for (const [flag, value] of Object.entries(body)) {
    if (value === true) words.push(`--${flag}`);
    else if (value === false) words.push(`--no-${flag}`);
    else if (typeof value === "object") words.push(`--${flag} ${flag === "cluster" ? "my-cluster.yaml" : "config.json"}`);
    else words.push(`--${flag} ${quoted(String(value))}`);
  }
  return words.join(" ");
};

export const scenario = (body) => Object.entries(body).map(([flag, value]) => {
  const shown = typeof value === "object" ? (flag === "cluster" ? "my-cluster.yaml" : "config.json") : value;
  return `${flag.replaceAll("-", "_")}: ${/^[\w.+-]+$/.test(String(shown)) ? shown : JSON.stringify(shown)}`;
}).join("\n") + "\n";
