"use strict";
// What every page of results draws with: quantities as text, elements, tables, charts.
const Page = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = ["#3b7dd8", "#e08a1e", "#3f9b5c", "#c2478d", "#7a62c9", "#b5a21c", "#2a9aa8", "#9a5b3c", "#708090", "#d1584f"];

  const prefixes = [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
  const digits = (x) => (Number.isInteger(x) && Math.abs(x) < 1e6 ? String(x) : Number(x.toPrecision(4)).toString());
  function show(value, unit) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "string") return value;
    if (unit === "s") {
      if (value >= 1 || value === 0) return digits(value) + " s";
      return value >= 1e-3 ? digits(value * 1e3) + " ms" : digits(value * 1e6) + " µs";
    }
    if (unit === "" || unit === undefined) return digits(value);
    if (unit === "1/s") unit = "/s";
    for (const [prefix, size] of prefixes) if (Math.abs(value) >= size) return digits(value / size) + " " + prefix + unit;
    return digits(value) + " " + unit;
  }
  const element = (tag, text, parent, className) => {
    const made = document.createElement(tag);
    if (text !== null && text !== undefined) made.textContent = text;
    if (className) made.className = className;
    if (parent) parent.appendChild(made);
    return made;
  };
  function section(title, note) {
    const box = element("section", null, document.getElementById("page"));
    element("h2", title, box);
    if (note) element("p", note, box);
    const choices = element("div", null, box, "choices");
    return { box, choices };
  }
  function choice(parent, label, options, selected, onChange) {
    const box = element("label", label + " ", parent);
    const select = element("select", null, box);
    for (const [value, text] of options) {
      const option = element("option", text, select);
      option.value = value;
      option.selected = value === selected;
    }
    select.addEventListener("change", onChange);
    return select;
  }
  function dataTable(box, name) {
    const details = element("details", null, box);
    element("summary", "Data of this chart", details);
    const scroll = element("div", null, details, "scroll");
    return (head, rows) => {
      scroll.replaceChildren();
      const table = element("table", null, scroll);
      table.id = name + "-data";
      const top = element("tr", null, element("thead", null, table));
      for (const cell of head) element("th", cell, top);
      const body = element("tbody", null, table);
      for (const row of rows.slice(0, 5000)) {
        const line = element("tr", null, body);
        for (const cell of row) element("td", cell, line);
      }
    };
  }
  const charts = {};
  function draw(frame, name, configuration) {
    if (charts[name]) charts[name].destroy();
    let canvas = frame.querySelector("canvas");
    if (!canvas) canvas = element("canvas", null, frame);
    canvas.id = name;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", configuration.label);
    Chart.defaults.color = css("--fore");
    Chart.defaults.borderColor = css("--line");
    const options = { animation: false, responsive: true, maintainAspectRatio: false, ...configuration.options };
    charts[name] = new Chart(canvas, { type: configuration.type, data: configuration.data, options, plugins: configuration.plugins || [] });
  }
  const axis = (text, more) => ({ title: { display: true, text }, ...more });
  addEventListener("beforeprint", () => Object.values(charts).forEach((chart) => chart.resize()));
  addEventListener("afterprint", () => Object.values(charts).forEach((chart) => chart.resize()));
  // Draws now, and again when the colours of the system change. Tests wait for `ready`.
  const drawAll = (renders) => {
    const renderAll = () => renders.filter(Boolean).forEach((render) => render());
    renderAll();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renderAll);
    document.body.dataset.ready = "true";
  };
  return { css, palette, digits, show, element, section, choice, dataTable, draw, axis, drawAll };
})();
