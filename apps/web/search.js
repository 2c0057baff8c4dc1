// A search that runs on the server: one at a time for each view, with its progress, until its answer or until it is
// cancelled. It ends when the page is left, because its request ends.
import {stream} from "./api.js";
import {el} from "./dom.js";
import * as f from "./format.js";

// `command`: "plan". A search belongs to the body of its request: with another body, `of(body)` is null.
export const searches = (command) => {
  let latest = null;  // {key, answer, running, progress, abort, error}
  const cancel = () => latest?.abort.abort();
  return {
    cancel,
    of: (body) => latest && latest.key === JSON.stringify(body) ? latest : null,
    // redraw() after each progress and at the end.
    start: (body, redraw) => {
      cancel();
      const mine = {key: JSON.stringify(body), answer: null, running: true, progress: null, abort: new AbortController(), error: null};
      latest = mine;
      const tell = (done, all, unit) => { mine.progress = {done, all, unit}; redraw(); };
      stream(command, body, tell, mine.abort.signal)
        .then((answer) => { mine.answer = answer; })
        .catch((error) => { mine.error = error.name === "AbortError" ? "cancelled" : error.message; })
        .finally(() => { mine.running = false; if (latest === mine) redraw(); });
      redraw();
    },
  };
};

// The buttons, and how far the search is.
export const controls = (current, {title, start, cancel}) => {
  const running = current?.running ?? false;
  const p = current?.progress;
  return el("div", {class: "row"},
    el("button", {type: "button", class: "primary", id: "search", disabled: running, onclick: start}, title),
    el("button", {type: "button", id: "cancel", disabled: !running, onclick: cancel}, "Cancel"),
    running ? el("progress", {max: p?.all ?? 1, value: p?.done, "aria-label": "search"}) : null,
    running && p ? `${f.grouped(p.done)} of ${f.grouped(p.all)} ${p.unit}` : "");
};
