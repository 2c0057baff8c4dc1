// The results of the study that the server was started with: the page of `orrery report`, as it is now.
import {el} from "./dom.js";

// A frame as tall as its page, so that only one of the two scrolls.
const grows = (frame) => frame.addEventListener("load", () => {
  const inner = frame.contentDocument?.documentElement;
  if (!inner) return;
  const fit = () => { frame.style.height = `${inner.querySelector("body").scrollHeight + 40}px`; };
  new ResizeObserver(fit).observe(inner.querySelector("body"));
  fit();
});

export const show = (box, name) => {
  if (box.querySelector("iframe")) return;
  const frame = el("iframe", {src: "study", title: `Results of the study ${name}`, class: "study"});
  grows(frame);
  box.replaceChildren(
    el("div", {class: "row"}, el("span", {class: "hint"}, `${name}: a row for each point that is done`),
      el("button", {type: "button", id: "study-again", onclick: () => frame.contentWindow.location.reload()}, "Read the results again"),
      el("a", {href: "study", target: "_blank"}, "Open alone")),
    frame);
};
