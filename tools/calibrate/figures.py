"""Single figures in the catalogue's YAML files: found by path, read, replaced in place.

Only the layout that data/ has is understood: block mappings, lists of block mappings, scalars on the line of their key.
A path has dots; an entry of a list goes by its name or its number: `dimensions.nvlink.latency`, `layers.0.kind`.
"""
import decimal
import re

KEY = re.compile(r"^(\s*)(- )?([A-Za-z_][\w./, -]*?):(?:\s+(.*?))?\s*$")
NUMBER = re.compile(r"^([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(.*)$")
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Missing(Exception):
    pass


def parsed(line):
    """(column of the key, starts an entry of a list, key, text of the value) or None."""
    if line.lstrip().startswith("#"):
        return None
    found = KEY.match(line)
    if not found:
        return None
    indent, dash, key, value = found.groups()
    return len(indent) + (2 if dash else 0), bool(dash), key, value or ""


def entries(lines, begin, end, column):
    """Ranges of the entries of a list whose keys are at `column`."""
    starts = [i for i in range(begin, end)
              if (at := parsed(lines[i])) and at[1] and at[0] == column]
    return list(zip(starts, starts[1:] + [end]))


def block(lines, begin, end, column, key):
    """The line of `key` at `column`, and the end of what belongs to it."""
    for i in range(begin, end):
        at = parsed(lines[i])
        if at and at[0] == column and at[2] == key:
            last = i + 1
            while last < end and (not lines[last].strip() or len(lines[last]) - len(lines[last].lstrip()) > column):
                last += 1
            return i, last
    return None


def locate(lines, path):
    """Line number of the figure `path`. Raises Missing."""
    begin, end, column, in_list, at = 0, len(lines), 0, False, None
    for segment in path.split("."):
        if in_list:
            begin, end = entry(lines, begin, end, column, segment, path)
            in_list = False
            continue
        found = block(lines, begin, end, column, segment)
        if found is None:
            raise Missing(path)
        at, end = found
        begin = at + 1
        inner = next((one for one in map(parsed, lines[begin:end]) if one), None)
        if inner:
            column, in_list = inner[0], inner[1]
    if at is None or in_list or not parsed(lines[at])[3]:
        raise Missing(path)
    return at


def entry(lines, begin, end, column, name, path):
    ranges = entries(lines, begin, end, column)
    for number, (first, last) in enumerate(ranges):
        named = [parsed(lines[i]) for i in range(first, last)]
        if name == str(number) or any(one and one[2] == "name" and one[3] == name for one in named):
            return first, last
    raise Missing(path)


def read(text, path):
    """(number, unit) of a figure."""
    lines = text.splitlines()
    value = parsed(lines[locate(lines, path)])[3].split(" #")[0].strip()
    found = NUMBER.match(value)
    if not found:
        raise ValueError(f"{path}: {value!r} is no number")
    return float(found[1]), found[2].strip()


def spelled(number, unit, digits=3):
    """Three digits that count, without an exponent."""
    text = format(decimal.Decimal(f"{number:.{digits}g}"), "f")
    return f"{text} {unit}".strip()


def replaced(text, path, number):
    lines = text.splitlines()
    at = locate(lines, path)
    before = parsed(lines[at])[3].split(" #")[0].strip()
    unit = NUMBER.match(before)[2].strip()
    head = lines[at][: lines[at].rindex(before)] if before else lines[at] + " "
    rest = lines[at][lines[at].rindex(before) + len(before):]
    lines[at] = head + spelled(number, unit) + rest
    return "\n".join(lines) + "\n"


def with_figure(text, path, value):
    """The text with a figure that it leaves to its default written out; top level only."""
    try:
        locate(text.splitlines(), path)
        return text
    except Missing:
        if "." in path:
            raise
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(("basis:", "sources:"))), len(lines))
    return "\n".join(lines[:at] + [f"{path}: {value}"] + lines[at:]) + "\n"


def with_source(text, path, citation):
    """The text with `citation` as the source of `path`, which is taken out of lines that cite several figures."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("sources:")), None)
    if start is None:
        lines.append("sources:")
        start = len(lines) - 1
    kept = []
    for line in lines[start + 1:]:
        at = parsed(line)
        names = [name.strip() for name in at[2].split(",")] if at else []
        if path in names:
            names.remove(path)
            if not names:
                continue
            line = f"  {', '.join(names)}:{line.split(':', 1)[1]}"
        kept.append(line)
    quoted = '"' + citation.replace("\\", "\\\\").replace('"', '\\"') + '"'
    same = next((i for i, line in enumerate(kept) if (parsed(line) or (0, 0, "", ""))[3] == quoted), None)
    if same is None:
        kept.append(f"  {path}: {quoted}")
    else:
        kept[same] = f"  {parsed(kept[same])[2]}, {path}: {quoted}"
    return "\n".join(lines[: start + 1] + kept) + "\n"


def in_unit(bound, unit):
    """A bound of a spec as a number in the figure's unit; times may be written in another unit."""
    if isinstance(bound, (int, float)):
        return float(bound)
    found = NUMBER.match(str(bound))
    if not found:
        raise ValueError(f"{bound!r} is no number")
    number, own = float(found[1]), found[2].strip()
    if own in ("", unit):
        return number
    if own in SECONDS and unit in SECONDS:
        return number * SECONDS[own] / SECONDS[unit]
    raise ValueError(f"{bound!r} is not in {unit or 'plain numbers'}")
