"use strict";
// Draws the page from the data in #data: columns of rows (numbers, or a dictionary and indices), and facts of the study.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const count = data.count;
  const valueOf = {};
  const meta = {};
  for (const column of data.columns) {
    meta[column.name] = column;
    valueOf[column.name] = column.dictionary
      ? (i) => (column.values[i] < 0 ? null : column.dictionary[column.values[i]])
      : (i) => column.values[i];
  }
  const all = Array.from({ length: count }, (_, i) => i);
  const isOk = (i) => valueOf.status(i) === "ok";
  const ok = all.filter(isOk);
  // The axis or derived value that a result repeats, such as "devices": only one of both is shown.
  const given = (name) => data.columns.find((c) => c.kind !== "metric" && c.path === name && !c.dictionary);
  const isRepeated = (c) => c.kind === "metric" && given(c.name) !== undefined;
  const shownName = (name) => (meta[name] && isRepeated(meta[name]) ? given(name).name : name);
  const objective = shownName(data.objective);
  const { css, palette, digits, show, element, section, choice, dataTable, draw, axis, drawAll } = Page;
  const shown = (name, i) => show(valueOf[name](i), meta[name].unit);
  const titleOf = (name) => meta[name].title + (meta[name].unit ? ` [${meta[name].unit}]` : "");

  const numeric = data.columns.filter((c) => !c.dictionary && c.kind !== "id" && !isRepeated(c) && ok.some((i) => valueOf[c.name](i) !== null)).map((c) => c.name);
  const varies = (name) => new Set(all.map(valueOf[name])).size > 1;
  const axes = data.columns.filter((c) => c.kind === "axis" && varies(c.name)).map((c) => c.name);
  const settings = data.columns.filter((c) => c.kind === "axis").map((c) => c.name);
  const options = (names) => names.map((n) => [n, titleOf(n)]);
  const describe = (i) => {
    const lines = [`point ${valueOf.id(i)}`, ...settings.map((n) => `${meta[n].title}: ${shown(n, i)}`)];
    if (valueOf.plan(i)) lines.push("plan: " + valueOf.plan(i));
    return lines;
  };
  // 1 where less of a column is better, -1 where more is.
  const sign = (name) => (meta[name] && meta[name].more ? -1 : 1);
  const bestWord = (name) => (sign(name) > 0 ? "least" : "most");
  // The row with the best value of a column among some; null: none has a number there.
  const bestOf = (rows, name) => rows.reduce((best, i) => {
    const value = valueOf[name](i);
    return value !== null && (best === null || sign(name) * value < sign(name) * valueOf[name](best)) ? i : best;
  }, null);
  const best = numeric.includes(objective) ? bestOf(ok, objective) : null;

  function summary() {
    const page = document.getElementById("page");
    element("h1", data.name || "Study", page);
    if (data.description) element("p", data.description, page);
    const box = element("div", null, page, "counts");
    const fact = (label, value) => { const one = element("div", null, box); element("span", label, one); element("b", value, one); };
    fact("points", String(count));
    for (const status of ["ok", "infeasible", "failed"]) fact(status, String(all.filter((i) => valueOf.status(i) === status).length));
    if (best !== null) {
      fact(bestWord(objective) + " " + meta[objective].title, shown(objective, best));
      element("p", "Best point: " + describe(best).join(", "), page);
    }
  }

  function front(x, y) {
    const points = ok.filter((i) => valueOf[x](i) !== null && valueOf[y](i) !== null);
    const order = (name, a, b) => sign(name) * (valueOf[name](a) - valueOf[name](b));
    points.sort((a, b) => order(x, a, b) || order(y, a, b));
    const kept = [];
    let lowest = Infinity;
    for (const i of points) if (sign(y) * valueOf[y](i) < lowest) { lowest = sign(y) * valueOf[y](i); kept.push(i); }
    return { points, kept };
  }
  function pareto() {
    if (numeric.length < 2 || ok.length < 2) return null;
    const { box, choices } = section("Pareto front", "Every point that is ok; the line joins those that no other point beats in both. Hover for the plan.");
    const directions = element("p", "", box);
    const frame = element("div", null, box, "frame");
    const fill = dataTable(box, "pareto");
    const [first, second] = [data.front[0], data.front[1]].map(shownName).map((n) => (numeric.includes(n) ? n : null));
    const fallback = ["price_usd", "cost_usd", "devices", ...axes].map(shownName).find((n) => numeric.includes(n) && varies(n) && n !== objective);
    const render = () => {
      const x = horizontal.value, y = vertical.value;
      const { points, kept } = front(x, y);
      directions.textContent = [x, y].map((n) => `${meta[n].title}: ${sign(n) > 0 ? "less" : "more"} is better`).join("; ") + ".";
      const at = (i) => ({ x: valueOf[x](i), y: valueOf[y](i), row: i });
      const isLog = (n) => { const v = points.map(valueOf[n]); return Math.min(...v) > 0 && Math.max(...v) / Math.min(...v) > 50 ? "logarithmic" : "linear"; };
      draw(frame, "pareto", {
        type: "scatter", label: "Pareto front",
        data: { datasets: [
          { label: "front", data: kept.map(at), showLine: true, borderColor: palette[1], backgroundColor: palette[1], pointRadius: 5, borderWidth: 2, order: 0 },
          { label: "points", data: points.map(at), backgroundColor: palette[0] + "99", pointRadius: points.length > 2000 ? 1.5 : 3, order: 1 }] },
        options: { scales: { x: axis(titleOf(x), { type: isLog(x), ticks: { maxTicksLimit: 8, callback: (v) => show(v, meta[x].unit) } }), y: axis(titleOf(y), { type: isLog(y), ticks: { maxTicksLimit: 8, callback: (v) => show(v, meta[y].unit) } }) },
          plugins: { tooltip: { callbacks: { label: (item) => [...describe(item.raw.row), `${meta[x].title}: ${shown(x, item.raw.row)}`, `${meta[y].title}: ${shown(y, item.raw.row)}`] } } } } });
      fill(["point", titleOf(x), titleOf(y), ...settings.map((n) => meta[n].title), "plan"], kept.map((i) => [valueOf.id(i), shown(x, i), shown(y, i), ...settings.map((n) => shown(n, i)), valueOf.plan(i)]));
    };
    const horizontal = choice(choices, "across", options(numeric), first || fallback || numeric[0], render);
    const vertical = choice(choices, "up", options(numeric), second || objective, render);
    return render;
  }

  const ordered = (name) => [...new Set(all.map(valueOf[name]))].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : meta[name].dictionary ? meta[name].dictionary.indexOf(a) - meta[name].dictionary.indexOf(b) : 0));
  const heat = (part) => { const t = Math.max(0, Math.min(1, part)); return `hsl(${Math.round(215 - 190 * t)} 68% ${Math.round(52 - 6 * t)}%)`; };
  // Cells of two axes: floating bars of a library's bar chart.
  function cells(frame, name, x, y, colour, lines) {
    const across = ordered(x), up = ordered(y);
    const key = (i) => across.indexOf(valueOf[x](i)) + "|" + up.indexOf(valueOf[y](i));
    const groups = new Map();
    for (const i of all) { const k = key(i); if (!groups.has(k)) groups.set(k, []); groups.get(k).push(i); }
    const rowAt = (column, line) => groups.get(column + "|" + line) || [];
    const datasets = up.map((value, line) => ({
      label: show(value, meta[y].unit), grouped: false, barPercentage: 1, categoryPercentage: 1, borderWidth: 1, borderColor: css("--panel"),
      data: across.map((_, column) => (rowAt(column, line).length ? [line - 0.5, line + 0.5] : null)),
      backgroundColor: across.map((_, column) => colour(rowAt(column, line))) }));
    draw(frame, name, { type: "bar", label: name, data: { labels: across.map((v) => show(v, meta[x].unit)), datasets },
      options: { scales: { x: axis(meta[x].title, { grid: { display: false } }),
        y: axis(meta[y].title, { min: -0.5, max: up.length - 0.5, grid: { display: false }, afterBuildTicks: (scale) => { scale.ticks = up.map((_, k) => ({ value: k })); }, ticks: { autoSkip: true, callback: (v) => show(up[v], meta[y].unit) } }) },
        plugins: { legend: { display: false }, tooltip: { callbacks: { title: () => "", label: (item) => lines(rowAt(item.dataIndex, item.datasetIndex)) } } } } });
    return { across, up, rowAt };
  }
  function heatMap() {
    if (axes.length < 2 || ok.length === 0) return null;
    const { box, choices } = section("Map of two axes", `Where several points have the same two values, the cell shows the one with the ${bestWord(objective)} ${meta[objective].title}. Grey: no point is ok.`);
    const frame = element("div", null, box, "frame");
    const legend = element("p", "", box);
    const fill = dataTable(box, "heat");
    const render = () => {
      const x = horizontal.value, y = vertical.value, z = value.value;
      const pick = (rows) => bestOf(rows.filter(isOk), numeric.includes(objective) ? objective : z);
      const numbers = [];
      const per = new Map();
      for (const i of ok) { const k = valueOf[x](i) + "|" + valueOf[y](i); per.set(k, [...(per.get(k) || []), i]); }
      for (const rows of per.values()) { const i = pick(rows); if (i !== null && valueOf[z](i) !== null) numbers.push(valueOf[z](i)); }
      const low = Math.min(...numbers), high = Math.max(...numbers);
      const part = (v) => (high > low ? (low > 0 && high / low > 20 ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low)) : 0);
      const colour = (rows) => { const i = pick(rows); return i === null || valueOf[z](i) === null ? css("--line") : heat(part(valueOf[z](i))); };
      const { across, up, rowAt } = cells(frame, "heat", x, y, colour, (rows) => { const i = pick(rows); return i === null ? [rows.length ? valueOf.reason(rows[0]) || "not ok" : ""] : [`${meta[z].title}: ${shown(z, i)}`, ...describe(i)]; });
      legend.textContent = numbers.length ? `${meta[z].title}: blue ${show(low, meta[z].unit)} to orange ${show(high, meta[z].unit)}` : "no numbers";
      fill([meta[y].title + " \\ " + meta[x].title, ...across.map((v) => show(v, meta[x].unit))], up.map((v, line) => [show(v, meta[y].unit), ...across.map((_, column) => { const i = pick(rowAt(column, line)); return i === null ? "–" : shown(z, i); })]));
    };
    const horizontal = choice(choices, "across", options(axes), axes[1], render);
    const vertical = choice(choices, "up", options(axes), axes[0], render);
    const value = choice(choices, "value", options(numeric), objective, render);
    return render;
  }
  function planMap() {
    if (axes.length < 2 || !ok.some((i) => valueOf.plan(i)) || new Set(ok.map(valueOf.plan)).size < 2) return null;
    const { box, choices } = section("Map of best plans", "The plan of the best point of each cell.");
    const frame = element("div", null, box, "frame");
    const fill = dataTable(box, "plans");
    const render = () => {
      const x = horizontal.value, y = vertical.value, detail = kind.value;
      const pick = (rows) => bestOf(rows.filter(isOk), objective);
      const label = (i) => (detail === "plan" ? valueOf.plan(i) : `${detail} ${data.planFields[detail][i]}`);
      const labels = [...new Set(ok.map(label))];
      const colour = (rows) => { const i = pick(rows); return i === null ? css("--line") : palette[labels.indexOf(label(i)) % palette.length]; };
      const { across, up, rowAt } = cells(frame, "plans", x, y, colour, (rows) => { const i = pick(rows); return i === null ? ["not ok"] : [label(i), ...describe(i)]; });
      fill([meta[y].title + " \\ " + meta[x].title, ...across.map((v) => show(v, meta[x].unit))], up.map((v, line) => [show(v, meta[y].unit), ...across.map((_, column) => { const i = pick(rowAt(column, line)); return i === null ? "–" : label(i); })]));
    };
    const horizontal = choice(choices, "across", options(axes), axes[1], render);
    const vertical = choice(choices, "up", options(axes), axes[0], render);
    const kind = choice(choices, "colour by", [["plan", "the whole plan"], ...Object.keys(data.planFields).map((n) => [n, n])], data.planFields.tp ? "tp" : "plan", render);
    return render;
  }

  function stacks() {
    const kinds = Object.keys(data.stacks).filter((k) => data.stacks[k].length);
    if (!kinds.length) return null;
    const { box, choices } = section("Breakdown", "For each value of an axis, its best point; points that do not fit are shown only where no other is ok, marked *.");
    const frame = element("div", null, box, "frame");
    const fill = dataTable(box, "breakdown");
    const render = () => {
      const by = group.value, parts = data.stacks[kind.value].filter((p) => p.values.some((v) => v));
      const values = by === "id" ? null : ordered(by);
      const has = (i) => valueOf[objective] && valueOf[objective](i) !== null;
      const rows = values ? values.map((v) => { const same = all.filter((i) => valueOf[by](i) === v && has(i)); const good = same.filter(isOk); return bestOf(good.length ? good : same, objective); }).filter((i) => i !== null)
        : all.filter(has).sort((a, b) => isOk(b) - isOk(a) || sign(objective) * (valueOf[objective](a) - valueOf[objective](b))).slice(0, 40);
      const labels = rows.map((i) => (by === "id" ? "point " + valueOf.id(i) : shown(by, i)) + (isOk(i) ? "" : " *"));
      const unit = kind.value.includes("memory") ? "B" : "s";
      draw(frame, "breakdown", { type: "bar", label: "Breakdown", data: { labels, datasets: parts.map((p, k) => ({ label: p.name, data: rows.map((i) => p.values[i]), backgroundColor: palette[k % palette.length] })) },
        options: { scales: { x: { stacked: true, title: { display: true, text: by === "id" ? "points, best first" : meta[by].title } }, y: { stacked: true, title: { display: true, text: kind.value }, ticks: { callback: (v) => show(v, unit) } } },
          plugins: { tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${show(item.raw, unit)}`, afterBody: (items) => describe(rows[items[0].dataIndex]) } } } } });
      fill([by === "id" ? "point" : meta[by].title, ...parts.map((p) => p.name), "plan"], rows.map((i, k) => [labels[k], ...parts.map((p) => show(p.values[i], unit)), valueOf.plan(i)]));
    };
    const group = choice(choices, "for each", [...options(axes), ["id", "point, the best 40"]], axes.length ? axes[axes.length - 1] : "id", render);
    const kind = choice(choices, "show", kinds.map((k) => [k, k]), kinds[0], render);
    return render;
  }

  function tornado() {
    const list = data.sensitivities.filter((s) => s.step !== null);
    if (!list.length) return null;
    const { box } = section("Sensitivity", `Change of the step time at the best point (${data.sensitivities[0].point}) when one resource is ${digits(100 * (list[0].factor - 1))} % larger; the plan is searched again where the study searches. Less is better.`);
    const frame = element("div", null, box, "frame");
    const fill = dataTable(box, "tornado");
    return () => {
      const change = (s) => 100 * (s.step / s.base - 1);
      const label = (path) => (frame.clientWidth < 500 ? path.split(".").slice(-2).join(" ") : path);
      const sorted = [...list].sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
      frame.style.height = 90 + 34 * sorted.length + "px";
      draw(frame, "tornado", { type: "bar", label: "Sensitivity", data: { labels: sorted.map((s) => label(s.path)), datasets: [{ label: "step time, %", data: sorted.map(change), backgroundColor: sorted.map((s) => (change(s) <= 0 ? palette[2] : palette[9])) }] },
        options: { indexAxis: "y", scales: { x: axis("change of the step time, %") }, plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => `${item.raw.toFixed(3)} %: ${show(sorted[item.dataIndex].step, "s")} instead of ${show(sorted[item.dataIndex].base, "s")}` } } } } });
      fill(["resource", "step time", "before", "change, %"], sorted.map((s) => [s.path, show(s.step, "s"), show(s.base, "s"), change(s).toFixed(4)]));
    };
  }

  function rowsTable() {
    const { box, choices } = section("All points", "Click a heading to sort. A filter is a text, or a comparison such as < 10 in the column's own unit (SI).");
    const names = data.columns.filter((c) => !isRepeated(c)).map((c) => c.name).filter((n) => n === "id" || n === "status" || all.some((i) => valueOf[n](i) !== null));
    const search = element("input", null, element("label", "contains ", choices));
    search.id = "search";
    const size = 50;
    let page = 0, order = { name: "id", down: false };
    const filters = {};
    const scroll = element("div", null, box, "scroll");
    const table = element("table", null, scroll);
    table.id = "points";
    const head = element("thead", null, table), titles = element("tr", null, head), inputs = element("tr", null, head), body = element("tbody", null, table);
    const isText = (n) => Boolean(meta[n].dictionary);
    const marks = {};
    for (const n of names) {
      const cell = element("th", null, titles, isText(n) ? "text" : "");
      cell.scope = "col";
      const button = element("button", titleOf(n), cell);
      marks[n] = button;
      button.addEventListener("click", () => { order = { name: n, down: order.name === n && !order.down }; page = 0; render(); });
      const input = element("input", null, element("th", null, inputs));
      input.setAttribute("aria-label", "filter " + meta[n].title);
      input.dataset.column = n;
      input.addEventListener("input", () => { filters[n] = input.value.trim(); page = 0; render(); });
    }
    search.addEventListener("input", () => { page = 0; render(); });
    const matches = (n, text, i) => {
      const value = valueOf[n](i);
      const comparison = /^(<=|>=|<|>|=)\s*(-?[0-9.]+(?:e[+-]?[0-9]+)?)$/i.exec(text);
      if (!comparison) return String(shown(n, i)).toLowerCase().includes(text.toLowerCase());
      if (typeof value !== "number") return false;
      const limit = Number(comparison[2]);
      return { "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit, "=": value === limit }[comparison[1]];
    };
    const pages = element("div", null, box, "choices pages");
    const back = element("button", "‹ previous", pages), forth = element("button", "next ›", pages), state = element("span", "", pages);
    state.id = "state";
    back.addEventListener("click", () => { page -= 1; render(); });
    forth.addEventListener("click", () => { page += 1; render(); });
    function render() {
      const text = search.value.trim().toLowerCase();
      let rows = all.filter((i) => Object.entries(filters).every(([n, f]) => !f || matches(n, f, i)));
      if (text) rows = rows.filter((i) => names.some((n) => String(shown(n, i)).toLowerCase().includes(text)));
      const key = valueOf[order.name], direction = order.down ? -1 : 1;
      rows.sort((a, b) => { const x = key(a), y = key(b); if (x === y) return a - b; if (x === null) return 1; if (y === null) return -1; return direction * (x < y ? -1 : 1); });
      for (const n of names) marks[n].textContent = titleOf(n) + (n === order.name ? (order.down ? " ↓" : " ↑") : "");
      body.replaceChildren();
      for (const i of rows.slice(page * size, (page + 1) * size)) {
        const line = element("tr", null, body, valueOf.status(i));
        for (const n of names) {
          const cell = element("td", n === "id" ? String(valueOf.id(i)) : shown(n, i), line, isText(n) ? "text" : "");
          if (n === "status" && !isOk(i)) cell.classList.add("no");
          if (isText(n)) cell.title = shown(n, i);
        }
      }
      const last = Math.max(0, Math.ceil(rows.length / size) - 1);
      back.disabled = page <= 0;
      forth.disabled = page >= last;
      state.textContent = `${rows.length} of ${count} points, page ${Math.min(page, last) + 1} of ${last + 1}`;
    }
    return render;
  }

  function provenance() {
    const { box } = section("Where the numbers come from", "");
    const list = element("ul", null, box);
    for (const line of data.provenance) element("li", line, list);
    element("p", "Not modelled:", box);
    const missing = element("ul", null, box);
    for (const line of data.notModelled) element("li", line, missing);
    const details = element("details", null, box);
    element("summary", "The study", details);
    element("code", data.study, details);
    return null;
  }

  summary();
  drawAll([pareto(), heatMap(), planMap(), stacks(), tornado(), rowsTable(), provenance()]);
})();
