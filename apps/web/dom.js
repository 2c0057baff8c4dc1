// Elements without a framework: el("p", {class: "hint"}, "text", child).
export const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

export const $ = (id) => document.getElementById(id);

// A table with headings; columns: {title, text(row), value(row), left}. Sorts by the heading that is pressed.
export const table = (columns, rows, {sort = null, caption = "", onrow = null, rowclass = null, onsort = null} = {}) => {
  const body = el("tbody");
  let order = sort;
  const fill = () => {
    const sorted = order === null ? rows : [...rows].sort((a, b) => {
      const [x, y] = [columns[order.column].value(a), columns[order.column].value(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
    });
    body.replaceChildren(...sorted.map((row) => {
      const cells = columns.map((c) => el("td", {class: c.wraps ? "text wraps" : c.left ? "text" : null}, c.text(row)));
      return el("tr", {class: rowclass ? rowclass(row) : null, onclick: onrow ? () => onrow(row) : () => {}}, ...cells);
    }));
  };
  const heads = columns.map((c, i) => {
    const th = el("th", {class: c.left ? "text" : null, scope: "col"});
    th.append(c.value ? el("button", {type: "button", title: "sort", onclick: () => {
      order = {column: i, down: order !== null && order.column === i && !order.down};
      for (const other of heads) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      fill();
      onsort?.(order);
    }}, c.title) : c.title);
    if (sort?.column === i) th.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    return th;
  });
  fill();
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "table"},
    el("table", {}, caption ? el("caption", {class: "hint"}, caption) : null, el("thead", {}, el("tr", {}, ...heads)), body));
};
