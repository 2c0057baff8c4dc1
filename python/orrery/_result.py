"""Results as objects: the fields of a JSON document as attributes."""
import html
import json


class Result:
    """Fields as attributes: result.memory_B.total. Also result["memory_B"], iteration over names, to_dict()."""

    __slots__ = ("_fields",)

    def __init__(self, fields):
        """`fields`: a dictionary, or a JSON document as bytes, which is read when it is first needed."""
        object.__setattr__(self, "_fields", fields)

    def _read(self):
        if not isinstance(self._fields, dict):
            object.__setattr__(self, "_fields", json.loads(self._fields))
        return self._fields

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        fields = self._read()
        if name not in fields:
            raise AttributeError(f"no field {name!r}; there are {', '.join(fields)}")
        return wrapped(fields[name])

    def __getitem__(self, name):
        return wrapped(self._read()[name])

    def __setattr__(self, name, value):
        raise AttributeError("results do not change")

    def __iter__(self):
        return iter(self._read())

    def __contains__(self, name):
        return name in self._read()

    def __eq__(self, other):
        return isinstance(other, Result) and self._read() == other._read()

    def __dir__(self):
        return [*self._read(), "to_dict"]

    def to_dict(self):
        return json.loads(json.dumps(self._read()))

    def __repr__(self):
        fields = self._read()
        shown = [f"{name}={value!r}" for name, value in fields.items() if not isinstance(value, (dict, list))]
        return f"Result({', '.join(shown[:8])}{', …' if len(shown) > 8 or len(shown) < len(fields) else ''})"

    def _repr_html_(self):
        """In a notebook: bars of the time and the memory of an estimate, a table of the plans of a search, else the fields."""
        fields = self._read()
        if "best" in fields and fields["best"]:
            return plans_html(fields["best"])
        if "breakdown_s" in fields:
            return estimate_html(fields)
        return table_html(["field", "value"], [[n, v] for n, v in fields.items() if not isinstance(v, (dict, list))])


def wrapped(value):
    if isinstance(value, dict):
        return Result(value)
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    return value


COLOURS = ("#0072b2", "#e69f00", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#8c8c8c", "#b8a900", "#5b5bd6")


def table_html(heads, rows):
    def cells(tag, row):
        return "<tr>" + "".join(f"<{tag}>{html.escape(f'{v:.4g}' if isinstance(v, float) else str(v))}</{tag}>" for v in row) + "</tr>"
    return f"<table><thead>{cells('th', heads)}</thead><tbody>{''.join(cells('td', row) for row in rows)}</tbody></table>"


def bar_html(title, parts, unit, scale):
    """One bar whose parts have the lengths of their values, and their names with the values."""
    whole = sum(parts.values()) or 1.0
    shown = [(name, value, COLOURS[i % len(COLOURS)]) for i, (name, value) in enumerate(parts.items()) if value > 1e-9 * whole]
    x, boxes = 0.0, []
    for name, value, colour in shown:
        width = 600 * value / whole
        boxes.append(f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="20" fill="{colour}"><title>{html.escape(name)}</title></rect>')
        x += width
    labels = " ".join(f'<span style="color:{c}">&#9632;</span> {html.escape(n.replace("_", " "))} {v / scale:.4g} {unit}' for n, v, c in shown)
    return f'<div><b>{html.escape(title)}</b><br><svg width="600" height="20" role="img" aria-label="{html.escape(title)}">{"".join(boxes)}</svg><br>{labels}</div>'


def estimate_html(fields):
    memory = {n: v for n, v in fields["memory_B"].items() if n in ("weights", "gradients", "optimizer", "activations", "buffers", "kv_cache")}
    plan = ", ".join(f"{n} {v}" for n, v in fields["plan"].items() if n in ("tp", "cp", "pp", "ep", "dp", "vpp", "micro_batch", "zero", "recompute"))
    fits = "" if fields.get("feasible", True) else f' <b>does not fit: {html.escape(str(fields["infeasible_reason"]))}</b>'
    return (f'<p>{html.escape(plan)}{fits}</p>' + bar_html(f'step {fields["step_time_s"]:.4g} s', fields["breakdown_s"], "s", 1.0) +
            bar_html(f'memory {fields["memory_B"]["total"] / 2**30:.4g} GiB of {fields["memory_B"]["capacity"] / 2**30:.4g} GiB', memory, "GiB", 2**30))


def plans_html(best):
    names = ("tp", "cp", "pp", "ep", "dp", "vpp", "micro_batch", "zero", "recompute", "schedule")
    rows = [[e["step_time_s"], *(e["plan"].get(n, "") for n in names), e["memory_B"]["total"] / 2**30, e["mfu"]] for e in best]
    return table_html(["step, s", *(n.replace("_", " ") for n in names), "memory, GiB", "MFU"], rows)
