// The step as it runs: one row for each pipeline stage, from the simulation; or the rows of a timeline file, which the
// browser reads and nobody else.
import {call, stream} from "./api.js";
import {el, table} from "./dom.js";
import * as f from "./format.js";
import {palette} from "./charts.js";

const kColours = {forward: palette[0], backward: palette[1], weight_gradient: palette[2], recompute: palette[5], finish: palette[4], communication: palette[3], other: palette[6]};

const kOrder = ["accelerator", "communication", "memory"];

// The number of micro-batches. Training says in each kernel's arguments which one it is of; a batch of requests does not,
// and there a stage runs the same kernels for each of them, in order. 0: kernels do not tell micro-batches.
const kPasses = ["forward", "backward", "weight_gradient"];
const numbered = (rows, plan) => {
  const count = plan?.micro_batches ?? 0;
  if (rows.some((row) => row.events.some((e) => e.batch))) return count;
  if (count === 0 || plan.vpp > 1 || plan.schedule === "dualpipe") return 0;
  for (const row of rows.filter((r) => r.thread === "accelerator")) {
    for (const kind of kPasses) {
      const events = row.events.filter((e) => e.kind === kind).sort((a, b) => a.start - b.start);
      if (events.length % count !== 0) continue;
      const reversed = plan.schedule === "gpipe" && kind !== "forward";
      events.forEach((e, i) => { const k = Math.floor(i * count / events.length); e.batch = reversed ? count - k : k + 1; });
    }
  }
  return count;
};

// Joins events of one kind that follow one another, so that a row has blocks and not kernels.
const blocksOf = (events, gap) => {
  const blocks = [];
  for (const event of events) {
    const last = blocks[blocks.length - 1];
    if (last && last.kind === event.kind && last.batch === event.batch && last.chunk === event.chunk && event.start - last.end <= gap) last.end = Math.max(last.end, event.end);
    else blocks.push({...event});
  }
  return blocks;
};

const kindOf = (name) => {
  const first = name.split(".")[0];
  if (first in kColours) return first;
  if (first === "weight") return "weight_gradient";
  if (/^(optimizer|gradient)/.test(name)) return "finish";
  return "other";
};

const rowsOf = (trace) => {
  const events = (Array.isArray(trace) ? trace : trace?.traceEvents ?? []);
  const threads = new Map(), rows = new Map();
  for (const e of events) if (e.ph === "M" && e.name === "thread_name") threads.set(`${e.pid}/${e.tid}`, e.args.name);
  for (const e of events) {
    if (e.ph !== "X") continue;
    const thread = threads.get(`${e.pid}/${e.tid}`) ?? "";
    if (!kOrder.includes(thread)) continue;  // the host and receives only wait
    const key = `${e.pid}/${thread}`;
    if (!rows.has(key)) rows.set(key, {rank: e.pid, thread, events: []});
    const event = {start: e.ts / 1e6, end: (e.ts + e.dur) / 1e6, name: e.name, kind: thread === "communication" ? "communication" : kindOf(e.name)};
    if (Number.isInteger(e.args?.micro_batch) && kPasses.includes(event.kind)) Object.assign(event, {batch: e.args.micro_batch + 1, chunk: e.args.chunk});
    rows.get(key).events.push(event);
  }
  return [...rows.values()].sort((a, b) => a.rank - b.rank || kOrder.indexOf(a.thread) - kOrder.indexOf(b.thread));
};

// Any file in the form of Chrome's traces: of `orrery simulate --timeline`, of a profiler, of Chakra's tools.
const kMostRows = 64;
const rowsOfFile = (trace) => {
  const events = Array.isArray(trace) ? trace : trace?.traceEvents ?? [];
  const names = new Map(), rows = new Map();
  for (const e of events) if (e.ph === "M" && /^(thread|process)_name$/.test(e.name)) names.set(`${e.name} ${e.pid}/${e.name === "thread_name" ? e.tid : ""}`, e.args?.name ?? "");
  let first = Infinity;
  for (const e of events) {
    if (e.ph !== "X" || !(e.dur > 0)) continue;
    const key = `${e.pid}/${e.tid}`;
    const thread = names.get(`thread_name ${key}`) || `thread ${e.tid}`;
    if (!rows.has(key)) rows.set(key, {rank: names.get(`process_name ${e.pid}/`) || e.pid, thread, label: `${e.pid} ${thread}`, events: [], busy: 0});
    const communicates = /comm|nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send|recv/i.test(`${thread} ${e.name}`);
    const kind = communicates ? "communication" : kindOf(String(e.name));
    const row = rows.get(key);
    first = Math.min(first, Number(e.ts));
    row.busy += e.dur;
    row.events.push({start: Number(e.ts) / 1e6, end: (Number(e.ts) + e.dur) / 1e6, name: e.name, kind});
  }
  const most = [...rows.values()].sort((a, b) => b.busy - a.busy).slice(0, kMostRows);
  for (const row of most) {
    row.events.sort((a, b) => a.start - b.start);
    for (const e of row.events) { e.start -= first / 1e6; e.end -= first / 1e6; }
  }
  const order = (row) => [...rows.values()].indexOf(row);
  return {rows: most.sort((a, b) => order(a) - order(b)), left: rows.size - most.length};
};

const readFile = async (file) => {
  const stream = file.name.endsWith(".gz") ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  let trace = null;
  try { trace = JSON.parse(await new Response(stream).text()); }
  catch (error) { throw new Error(`${file.name}: not a timeline in the form of Chrome's traces: ${error.message}`); }
  const {rows, left} = rowsOfFile(trace);
  if (rows.length === 0) throw new Error(`${file.name}: has no events with a duration ("ph": "X")`);
  return {name: file.name, rows, left};
};

const draw = (canvas, rows, end, from, to) => {
  const height = 20, label = 118;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.width = width * ratio;
  canvas.height = (rows.length * height + 24) * ratio;
  canvas.style.height = `${rows.length * height + 24}px`;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const text = getComputedStyle(document.body).color;
  const x = (t) => label + (t - from) / (to - from) * (width - label);
  c.font = "12px system-ui, sans-serif";
  rows.forEach((row, i) => {
    c.fillStyle = text;
    c.fillText(row.label ? row.label.slice(0, 18) : row.thread === "accelerator" ? `rank ${row.rank}` : `  ${row.thread}`, 2, i * height + 15);
    for (const block of blocksOf(row.events, (to - from) / width * 0.5)) {
      if (block.end < from || block.start > to) continue;
      c.fillStyle = kColours[block.kind];
      c.globalAlpha = block.chunk ? 0.7 : 1;
      const left = Math.max(label, x(block.start)), right = Math.min(width, x(block.end));
      c.fillRect(left, i * height + 3, Math.max(0.6, right - left - (block.batch ? 0.6 : 0)), row.thread === "accelerator" || row.label ? height - 7 : 8);
      c.globalAlpha = 1;
      const number = block.batch ? String(block.batch) : "";
      if (number === "" || right - left < 8 * number.length + 4) continue;
      c.fillStyle = block.kind === "forward" ? "#ffffff" : "#000000";
      c.fillText(number, (left + right) / 2 - 3.5 * number.length, i * height + 14);
    }
  });
  c.fillStyle = text;
  for (let i = 0; i <= 4; ++i) {
    const t = from + (to - from) * i / 4;
    c.textAlign = i === 0 ? "left" : i === 4 ? "right" : "center";
    c.fillText(f.seconds(t), x(t), rows.length * height + 16);
  }
  c.textAlign = "left";
};

let run = null;     // {key, answer, error, abort}
// Made once: a simulation that ends does not take it away from a user who is choosing a file.
const input = el("input", {type: "file", id: "timeline-file", accept: ".json,.gz"});
let opened = null;  // a file instead of the simulation: {name, rows, left}, or {error}

const chart = (rows, batches = 0) => {
  const end = Math.max(...rows.flatMap((row) => row.events.map((e) => e.end)));
  const canvas = el("canvas", {class: "gantt", role: "img", tabindex: "0",
    "aria-label": `Timeline of ${rows.length} rows over ${f.seconds(end)}${batches ? `, micro-batches 1 to ${batches}` : ""}; plus and minus change the scale, arrows move`});
  let from = 0, to = end;
  const redraw = () => draw(canvas, rows, end, from, to);
  const zoom = (factor, about) => {
    const span = Math.min(end, Math.max(end / 5000, (to - from) * factor));
    const part = (about - from) / (to - from);
    from = Math.max(0, Math.min(end - span, about - part * span));
    to = from + span;
    redraw();
  };
  const move = (part) => { const span = to - from; from = Math.max(0, Math.min(end - span, from + part * span)); to = from + span; redraw(); };
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, from + (to - from) * Math.max(0, (e.clientX - box.left - 118) / (box.width - 118)));
  }, {passive: false});
  canvas.addEventListener("keydown", (e) => {
    const keys = {"+": () => zoom(0.7, (from + to) / 2), "=": () => zoom(0.7, (from + to) / 2), "-": () => zoom(1.4, (from + to) / 2), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "0": () => zoom(1e9, 0)};
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });
  new ResizeObserver(redraw).observe(canvas);
  const buttons = el("div", {class: "row"},
    el("button", {type: "button", onclick: () => zoom(0.5, (from + to) / 2)}, "Closer"), el("button", {type: "button", onclick: () => zoom(2, (from + to) / 2)}, "Wider"),
    el("button", {type: "button", onclick: () => move(-0.5)}, "Earlier"), el("button", {type: "button", onclick: () => move(0.5)}, "Later"));
  const legend = el("div", {class: "legend"}, ...Object.entries(kColours).map(([kind, c]) => el("span", {style: `--c:${c}`}, f.words(kind))));
  const hasChunks = rows.some((row) => row.events.some((e) => e.chunk));
  const hint = batches ? el("p", {class: "hint"}, `The number in a block is its micro-batch.${hasChunks ? " Lighter blocks are of later chunks of the stage." : ""}`) : null;
  return [buttons, canvas, legend, ...(hint ? [hint] : [])];
};

const simulated = ({answer, plan}) => {
  const download = el("a", {download: "timeline.json", href: URL.createObjectURL(new Blob([JSON.stringify(answer.timeline)], {type: "application/json"}))}, "Download the timeline (Chrome trace, for Perfetto)");
  const classes = table([
    {title: "ranks", left: true, text: (c) => c.ranks.map(([a, b]) => a === b ? a : `${a}-${b}`).join(", ")},
    {title: "end", text: (c) => f.seconds(c.finish_ns / 1e9)}, {title: "compute", text: (c) => f.seconds(c.compute_ns / 1e9)},
    {title: "exposed comm", text: (c) => f.seconds(c.exposed_comm_ns / 1e9)}, {title: "idle", text: (c) => f.seconds(c.idle_ns / 1e9)}],
    answer.classes, {caption: "ranks with equal results"});
  const rows = rowsOf(answer.timeline);
  return [...chart(rows, numbered(rows, plan)), el("p", {}, download), classes];
};

// `job`: the request of the estimate of the same plan, which has the number of micro-batches.
export const show = (box, body, job) => {
  const again = () => { if (box.isConnected && box.dataset.view === "pipeline") show(box, body, job); };
  input.onchange = async () => {
    try { opened = await readFile(input.files[0]); } catch (error) { opened = {error: error.message}; }
    again();
  };
  const source = el("div", {class: "row"}, el("label", {for: "timeline-file"}, "Show a timeline file (it stays in the browser)"), input,
    opened ? el("button", {type: "button", onclick: () => { opened = null; again(); }}, "Back to the simulation") : null);
  if (opened) {
    const text = opened.error ?? `${opened.name}${opened.left ? `: the ${kMostRows} busiest rows; ${opened.left} others are not shown` : ""}`;
    box.replaceChildren(source, el("p", {class: opened.error ? "worse" : "hint"}, text), ...(opened.error ? [] : chart(opened.rows)));
    return;
  }
  const key = JSON.stringify(body);
  if (run?.key !== key) {
    run?.abort.abort();
    const mine = {key, answer: null, error: null, abort: new AbortController()};
    run = mine;
    Promise.all([stream("simulate", {...body, timeline: true}, () => {}, mine.abort.signal), call("estimate", job, mine.abort.signal)])
      .then(([answer, estimate]) => { mine.answer = answer; mine.plan = estimate.plan; }).catch((error) => { mine.error = error.message; })
      .finally(() => { if (run === mine && !opened) again(); });
  }
  const intro = el("p", {class: "hint"}, "The step, simulated: one rank of each pipeline stage, its kernels and its communication.");
  if (run.error) box.replaceChildren(intro, el("p", {class: "worse"}, run.error), source);
  else if (!run.answer) box.replaceChildren(intro, el("p", {}, "Simulating …"), source);
  else box.replaceChildren(intro, ...simulated(run), source);
};
