// Charts, each with its data as a table below it.
import {el} from "./dom.js";
import {bytes} from "./format.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Distinct also for people who do not tell red from green (after Okabe and Ito, and two greys).
export const palette = ["#0072b2", "#e69f00", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#8c8c8c", "#b8a900", "#5b5bd6"];
const colours = new Map();
export const colour = (name) => {
  if (!colours.has(name)) colours.set(name, palette[colours.size % palette.length]);
  return colours.get(name);
};
// The same part has the same colour in every chart.
["compute", "recompute", "exposed_comm", "bubble", "optimizer", "offload", "host"].forEach(colour);

const common = () => ({
  animation: false, responsive: true, maintainAspectRatio: false,
  plugins: {legend: {position: "bottom", labels: {color: style("--text"), boxWidth: 12}}},
});

const axis = (title, format) => ({
  title: {display: title !== "", text: title, color: style("--dim")},
  ticks: {color: style("--dim"), callback: format, maxTicksLimit: 8}, grid: {color: style("--line")},
});

const live = [];
export const clear = () => { while (live.length) live.pop().destroy(); };

const drawn = (label, tall, config) => {
  const canvas = el("canvas", {role: "img", "aria-label": label});
  const box = el("div", {class: tall ? "chart tall" : "chart"}, canvas);
  queueMicrotask(() => { if (canvas.isConnected) live.push(new Chart(canvas, config)); });
  return box;
};

// Bars of parts: rows [{name, parts: {compute: 1.2}}]; `limit` is drawn as a line.
export const bars = (label, rows, format, {limit = null} = {}) => {
  const whole = Math.max(...rows.map((row) => Object.values(row.parts).reduce((a, b) => a + b, 0)), limit ?? 0);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.parts)))]
    .filter((name) => rows.some((row) => (row.parts[name] ?? 0) > 1e-9 * whole));
  const datasets = names.map((name) => ({
    label: name.replaceAll("_", " "), data: rows.map((row) => row.parts[name] ?? 0), backgroundColor: colour(name), stack: "all"}));
  const line = {id: "limit", afterDatasetsDraw: (chart) => {
    if (limit === null) return;
    const x = chart.scales.x.getPixelForValue(limit);
    const {top, bottom} = chart.chartArea;
    const context = chart.ctx;
    context.save();
    context.strokeStyle = style("--bad");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.restore();
  }};
  const options = {...common(), indexAxis: "y", scales: {
    x: {...axis("", (v) => format(v)), stacked: true, suggestedMax: limit === null ? undefined : limit * 1.02},
    y: {...axis("", function (v) { return this.getLabelForValue(v); }), stacked: true, grid: {display: false}}}};
  // Bytes have ticks at whole GiB.
  if (format === bytes) options.scales.x.ticks.stepSize = 2 ** Math.max(0, Math.ceil(Math.log2(whole / 6)));
  options.plugins.tooltip = {callbacks: {label: (item) => `${item.dataset.label}: ${format(item.raw)}`}};
  const box = drawn(label, false, {type: "bar", data: {labels: rows.map((row) => row.name), datasets}, options, plugins: [line]});
  box.style.height = `${90 + 34 * rows.length}px`;
  return box;
};

// Points {x, y, label, group}.
export const scatter = (label, points, {x, y, xFormat, yFormat, onpoint = null}) => {
  const groups = [...new Set(points.map((p) => p.group))];
  const datasets = groups.map((group) => ({
    label: group, data: points.filter((p) => p.group === group), backgroundColor: colour(group), pointRadius: 5, pointHoverRadius: 7}));
  const options = {...common(), scales: {x: axis(x, (v) => xFormat(v)), y: axis(y, (v) => yFormat(v))}};
  options.plugins.tooltip = {callbacks: {label: (item) => `${item.raw.label}: ${xFormat(item.raw.x)}, ${yFormat(item.raw.y)}`}};
  if (onpoint) options.onClick = (_, hit) => { if (hit.length) onpoint(datasets[hit[0].datasetIndex].data[hit[0].index]); };
  return drawn(label, true, {type: "scatter", data: {datasets}, options});
};
