"use strict";
// Draws the results of `orrery campaign --json` and `orrery jobs --json` in #data: a list of { name, result }.
(() => {
  const { palette, digits, show, element, section, dataTable, draw, axis, css, drawAll } = Page;
  const runs = JSON.parse(document.getElementById("data").textContent);
  const of = (schema) => runs.filter((run) => run.result.schema === schema);
  const campaigns = of("orrery.campaign/1"), clusters = of("orrery.jobs/1");
  const percent = (share) => digits(100 * share) + " %";
  const page = document.getElementById("page");
  element("h1", "Results", page);

  const parts = { useful: "useful", pauses: "checkpoint pauses", lost_work: "lost work", detection: "detection", restart: "restart", corruption: "silent corruption",
    short_of_spares: "short of spare nodes", planned: "planned stops", stragglers: "slow nodes", exchange: "exchange between sites",
    other_sites: "waiting for sites that are down" };
  const money = (usd) => (usd === null || usd === undefined ? "–" : show(usd, " USD"));

  function facts(parent, pairs) {
    const box = element("div", null, parent, "counts");
    for (const [name, value] of pairs) { const one = element("span", null, box); element("b", value, one); one.append(name); }
  }

  function summary(run) {
    const r = run.result;
    const { box } = section(run.name, `${r.model} on ${r.cluster}, ${r.devices} devices: ${digits(r.tokens / 1e9)} billion tokens in ${digits(r.steps)} steps of ${show(r.step_time_s, "s")}.`);
    facts(box, [["days (80 % interval)", `${digits(r.days.p50)} (${digits(r.days.p10)} to ${digits(r.days.p90)})`], ["useful time", percent(r.ettr)],
      ["interruptions", `${digits(r.interruptions)}`], ["checkpoint every", show(r.checkpoint_interval_s, "s")], ["money", money(r.usd)],
      ["energy", r.energy_J ? show(r.energy_J / 3600, "Wh") : "–"], ["carbon", r.co2_kg ? digits(r.co2_kg / 1000) + " t" : "–"], ["end", r.end || "–"]]);
    if (!r.what_ifs || !r.what_ifs.length) return;
    element("h3", "What if", box);
    element("p", "Changes that also save money first, then those with most days per dollar.", box);
    const scroll = element("div", null, box, "scroll"), table = element("table", null, scroll);
    const head = element("tr", null, element("thead", null, table)), body = element("tbody", null, table);
    for (const [title, kind] of [["change", "text"], ["days saved", ""], ["money", ""]]) element("th", title, head, kind);
    for (const one of r.what_ifs) {
      const line = element("tr", null, body);
      element("td", one.change, line, "text");
      element("td", digits(one.days_saved), line);
      element("td", money(one.usd_change), line);
    }
  }

  function timeBar() {
    if (!campaigns.length) return null;
    const { box } = section("Where the time goes", "Shares of the elapsed time; those of a campaign sum to 100 %.");
    const frame = element("div", null, box, "frame"), fill = dataTable(box, "time");
    frame.style.height = 130 + 50 * campaigns.length + "px";
    const names = Object.keys(parts).filter((part) => campaigns.some((run) => run.result.time_shares[part]));
    const share = (run, part) => run.result.time_shares[part] || 0;
    return () => {
      draw(frame, "time", { type: "bar", label: "Where the time goes", data: { labels: campaigns.map((run) => run.name),
        datasets: names.map((part, k) => ({ label: parts[part], data: campaigns.map((run) => 100 * share(run, part)), backgroundColor: part === "useful" ? palette[2] : palette[(k + 3) % palette.length] })) },
        options: { indexAxis: "y", scales: { x: axis("share of the elapsed time, %", { stacked: true, max: 100 }), y: { stacked: true } },
          plugins: { tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${digits(item.raw)} %` } } } } });
      fill(["part", ...campaigns.map((run) => run.name)], names.map((part) => [parts[part], ...campaigns.map((run) => percent(share(run, part)))]));
    };
  }

  function bySize() {
    const shown = campaigns.filter((run) => run.result.ettr_by_devices && run.result.ettr_by_devices.length > 1);
    if (!shown.length) return null;
    const { box } = section("Useful time against size", "The same kind of job on other numbers of devices, each with its best checkpoint interval and spares. The large point is the campaign.");
    const frame = element("div", null, box, "frame"), fill = dataTable(box, "size");
    return () => {
      draw(frame, "size", { type: "line", label: "Useful time against size", data: { datasets: shown.map((run, k) => ({ label: run.name, borderColor: palette[k % palette.length], backgroundColor: palette[k % palette.length],
        data: run.result.ettr_by_devices.map((point) => ({ x: point.devices, y: 100 * point.ettr })), pointRadius: run.result.ettr_by_devices.map((point) => (point.devices === run.result.devices ? 7 : 2)) })) },
        options: { scales: { x: axis("devices", { type: "logarithmic" }), y: axis("useful time, %", { min: 0, max: 100 }) },
          plugins: { tooltip: { callbacks: { title: (items) => `${items[0].raw.x} devices`, label: (item) => `${item.dataset.label}: ${digits(item.raw.y)} %` } } } } });
      fill(["campaign", "devices", "useful time"], shown.flatMap((run) => run.result.ettr_by_devices.map((point) => [run.name, String(point.devices), percent(point.ettr)])));
    };
  }

  // Servers of a job: those of lowest number that are free at its start; neighbours are one rectangle.
  function lanes(result, most) {
    const freeAt = new Array(result.servers).fill(0), bars = [];
    const started = result.jobs.filter((job) => !job.blocked).sort((a, b) => a.start_s - b.start_s || a.number - b.number).slice(0, most);
    for (const job of started) {
      let left = job.width, first = -1;
      for (let lane = 0; lane <= freeAt.length; lane += 1) {
        const taken = left > 0 && lane < freeAt.length && freeAt[lane] <= job.start_s;
        if (taken) { freeAt[lane] = job.end_s; left -= 1; if (first < 0) first = lane; }
        if (!taken && first >= 0) { bars.push({ job, low: first, high: lane }); first = -1; }
      }
    }
    return bars;
  }

  function gantt(run, index) {
    const r = run.result, name = "gantt-" + index;
    const { box } = section(run.name, `${r.arrived} jobs on ${r.servers} servers (${r.fabric}), policy ${r.policy}.`);
    facts(box, [["blocked", percent(r.blocking_rate)], ["utilisation", percent(r.utilisation)], ["mean wait", show(r.wait_s.mean, "s")], ["fairness", digits(r.fairness)]]);
    if (!r.jobs || !r.jobs.length) { element("p", "Jobs are listed for at most 10,000 arrivals.", box); return null; }
    const frame = element("div", null, box, "frame"), fill = dataTable(box, name);
    const bars = lanes(r, 500), kinds = r.kinds.map((kind) => kind.kind);
    const end = Math.max(1, ...bars.map((bar) => bar.job.end_s));
    const rectangles = { id: "jobs", afterDatasetsDraw: (chart) => {
      const { ctx, scales: { x, y } } = chart;
      for (const bar of bars) {
        if (!chart.isDatasetVisible(kinds.indexOf(bar.job.kind))) continue;
        const left = x.getPixelForValue(bar.job.start_s), top = y.getPixelForValue(bar.high), bottom = y.getPixelForValue(bar.low);
        ctx.fillStyle = palette[kinds.indexOf(bar.job.kind) % palette.length];
        ctx.fillRect(left, top, Math.max(1, x.getPixelForValue(bar.job.end_s) - left - 0.5), Math.max(1, bottom - top - 0.5));
      }
    } };
    return () => {
      draw(frame, name, { type: "scatter", label: "Jobs on servers", plugins: [rectangles], data: { datasets: kinds.map((kind, k) => ({ label: kind, data: [], backgroundColor: palette[k % palette.length], borderColor: css("--line") })) },
        options: { scales: { x: axis("time", { type: "linear", min: 0, max: end, ticks: { callback: (v) => (end > 7200 ? digits(v / 3600) + " h" : show(v, "s")) } }), y: axis("server", { min: 0, max: r.servers }) } } });
      fill(["job", "kind", "servers", "arrival", "start", "end"], r.jobs.filter((job) => !job.blocked).slice(0, 500).map((job) => [String(job.number), job.kind, String(job.width), ...[job.arrival_s, job.start_s, job.end_s].map((t) => show(t, "s"))]));
    };
  }

  campaigns.forEach(summary);
  const renders = [timeBar(), bySize(), ...clusters.map(gantt)];
  const missing = [...new Set(campaigns.flatMap((run) => run.result.not_modelled || []))];
  if (missing.length) {
    const { box } = section("Not modelled", "");
    const list = element("ul", null, box);
    for (const line of missing) element("li", line, list);
  }
  drawAll(renders);
})();
