// Two measures of many plans against each other, and the plans that no other one beats in both.
import {scatter} from "./charts.js";
import {el} from "./dom.js";

// The rows that no other row beats: at least as good in both measures and better in one. A measure: {value(row), more}
// (more: larger is better). Sorts by the first measure, so that n rows take n log n steps; rows without a value are
// left out.
export const front = (rows, x, y) => {
  const signed = (measure, row) => measure.more ? -measure.value(row) : measure.value(row);
  const known = rows.filter((row) => Number.isFinite(x.value(row)) && Number.isFinite(y.value(row)));
  const sorted = known.map((row) => ({row, a: signed(x, row), b: signed(y, row)})).sort((p, q) => p.a - q.a || p.b - q.b);
  const kept = [];
  let least = Infinity;
  for (const p of sorted) {
    const equal = kept.length && kept[kept.length - 1].a === p.a && kept[kept.length - 1].b === p.b;
    if (p.b < least || equal) kept.push(p);
    least = Math.min(least, p.b);
  }
  return kept.map((p) => p.row);
};

// measures: {name: {title, value, format, more}}. `ui` has the chosen names as ui.x and ui.y.
export const chart = (rows, measures, ui, {fallback, note, changed, onpoint}) => {
  const names = Object.keys(measures).filter((name) => rows.some((row) => Number.isFinite(measures[name].value(row))));
  const chosen = (key) => names.includes(ui[key]) ? ui[key] : fallback[key];
  const x = measures[chosen("x")], y = measures[chosen("y")];
  const select = (key, title) => [el("label", {for: `pareto-${key}`}, title),
    el("select", {id: `pareto-${key}`, class: "short", onchange: (e) => { ui[key] = e.target.value; changed(`pareto-${key}`); }},
      ...names.map((name) => el("option", {value: name, selected: name === chosen(key)}, measures[name].title)))];
  const best = new Set(front(rows, x, y));
  const points = rows.filter((row) => Number.isFinite(x.value(row)) && Number.isFinite(y.value(row))).map((row) => ({
    x: x.value(row), y: y.value(row), label: row.label, row, group: best.has(row) ? "front: no plan is better in both" : "other plans"}));
  points.sort((a, b) => a.group < b.group ? -1 : a.group > b.group ? 1 : a.x - b.x);
  return [
    el("div", {class: "row", id: "pareto"}, ...select("x", "Across"), ...select("y", "Upwards"),
      el("span", {class: "hint", id: "pareto-count"}, `${best.size} of ${points.length} plans are on the front`)),
    scatter(`${x.title} against ${y.title}; each point is a plan`, points, {x: x.title, y: y.title, xFormat: x.format, yFormat: y.format, onpoint: (p) => onpoint(p.row)}),
    note ? el("p", {class: "hint"}, note) : null,
  ].filter(Boolean);
};
