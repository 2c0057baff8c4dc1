#!/usr/bin/env python3
"""Draws the pipeline schedules of docs/models/schedules/tasks.json, one SVG each.

The tasks are from the solver (src/orrery/parallel/pipeline_picture_test.cpp writes and checks them). A row is a stage,
time runs to the right. The second chunk (DualPipe: the second direction) is paler.
--check draws nothing and fails if a picture is out of date.
"""
import argparse
import html
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "models" / "schedules"

UNIT, ROW, GAP = 16, 26, 5  # pixels: a tick, a stage, between stages
LEFT, TOP, MARGIN = 64, 62, 14
LEGEND_ROW, COLUMNS, LETTER = 20, 2, 6.4  # a letter is at most about so wide

# Light enough for dark digits in both themes; one hue a kind, the second chunk paler.
FILL = {"F": ("#7fa8ec", "#c6d9f8"), "B": ("#6cc08a", "#bfe6cc"), "I": ("#45b9c7", "#b3e3e8"),
        "W": ("#ecb347", "#f7deab")}
KINDS = {"F": "forward", "B": "backward, whole", "I": "backward, gradients of inputs",
         "W": "backward, gradients of weights"}

STYLE = """
  .paper { fill: #ffffff; stroke: #d5d9df }
  .lane { fill: #eef0f3 }
  text { font: 11px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #2b3138 }
  .title { font-size: 14px; font-weight: 600 }
  .cell { stroke: #ffffff; stroke-width: 1 }
  .pair { fill: none; stroke: #1c2127; stroke-width: 1.2 }
  .number { fill: #14181d; text-anchor: middle }
  .small { font-size: 9.5px }
  .end { text-anchor: end }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #14181d; stroke: #343b44 }
    .lane { fill: #232930 }
    text { fill: #d5dae0 }
    .number { fill: #14181d }
    .cell { stroke: #14181d }
    .pair { stroke: #f2f4f6 }
  }
"""


def rectangle(style, x, y, width, height, fill=None):
    color = f' fill="{fill}"' if fill else ""
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{color}/>'


def label(style, x, y, words):
    return f'<text class="{style}" x="{x:g}" y="{y:g}">{html.escape(str(words))}</text>'


def cell(kind, chunk, micro_batch, x, y, width, height):
    small = " small" if height < ROW else ""
    return [rectangle("cell", x, y, width, height, FILL[kind][chunk]),
            label("number" + small, x + width / 2, y + height / 2 + (3.4 if small else 4), micro_batch)]


def drawn_task(task, y):
    kind, chunk, micro_batch, start, end = task[:5]
    x, width = LEFT + start * UNIT, (end - start) * UNIT
    if kind != "P":
        return cell(kind, chunk, micro_batch, x, y, width, ROW)
    return [*cell("F", chunk, micro_batch, x, y, width, ROW / 2),
            *cell("B", 1 - chunk, task[5], x, y + ROW / 2, width, ROW / 2),
            rectangle("pair", x + 0.5, y + 0.5, width - 1, ROW - 1)]


def cells_used(schedule):
    """The (kind, chunk) there are, in the order of the legend, and whether there are pairs."""
    used = set()
    pairs = False
    for task in (task for stage in schedule["stages"] for task in stage):
        pairs = pairs or task[0] == "P"
        used |= {("F", task[1]), ("B", 1 - task[1])} if task[0] == "P" else {(task[0], task[1])}
    return sorted(used, key=lambda one: ("FBIW".index(one[0]), one[1])), pairs


def entries(schedule):
    """(kind, chunk, words) of the legend; P is a pair."""
    used, pairs = cells_used(schedule)
    kinds = [(kind, chunk, KINDS[kind] + of_chunk(schedule, chunk)) for kind, chunk in used]
    return kinds + ([("P", 0, "forward and backward at once")] if pairs else [])


def legend(schedule, y, column):
    lines = []
    for at, (kind, chunk, words) in enumerate(entries(schedule)):
        x, top = LEFT + at % COLUMNS * column, y + at // COLUMNS * LEGEND_ROW
        if kind == "P":
            lines += [rectangle("cell", x, top, 2 * UNIT, 7, FILL["F"][0]),
                      rectangle("cell", x, top + 7, 2 * UNIT, 7, FILL["B"][1]),
                      rectangle("pair", x + 0.5, top + 0.5, 2 * UNIT - 1, 13)]
        else:
            lines.append(rectangle("cell", x, top, 2 * UNIT, 14, FILL[kind][chunk]))
        lines.append(label("", x + 2 * UNIT + 8, top + 11, words))
    return lines


def of_chunk(schedule, chunk):
    if schedule["chunks"] == 1:
        return ""
    if any(task[0] == "P" for stage in schedule["stages"] for task in stage):
        return (", entered at stage 0", ", entered at the last stage")[chunk]
    return f", chunk {chunk}"


def drawing(schedule):
    stages = schedule["stages"]
    span = max(task[4] for stage in stages for task in stage)
    busy = [sum(task[4] - task[3] for task in stage) for stage in stages]
    lanes = []
    for number, stage in enumerate(stages):
        y = TOP + number * (ROW + GAP)
        lanes += [label("end", LEFT - 8, y + ROW / 2 + 4, f"stage {number}"),
                  rectangle("lane", LEFT, y, span * UNIT, ROW)]
        for task in stage:
            lanes += drawn_task(task, y)
    rows = -(-len(entries(schedule)) // COLUMNS)
    column = int(2 * UNIT + 24 + LETTER * max(len(words) for _, _, words in entries(schedule)))
    below = TOP + len(stages) * (ROW + GAP) + 9
    width = LEFT + max(span * UNIT, COLUMNS * column) + MARGIN
    height = below + rows * LEGEND_ROW + MARGIN - 6
    words = (f"{len(stages)} stages, {schedule['micro_batches']} micro-batches; "
             f"ends at {span}, each stage idle for {span - max(busy)}")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img">',
        f"<title>{html.escape(schedule['title'])}: {words}</title>", f"<style>{STYLE}</style>",
        f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        label("title", MARGIN, 27, schedule["title"]), label("", MARGIN, 46, words),
        *lanes, *legend(schedule, below, column), "</svg>", ""])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="draw nothing; fail when a picture is out of date")
    options = parser.parse_args(arguments)
    stale = []
    for name, schedule in json.loads((FOLDER / "tasks.json").read_text()).items():
        path, picture = FOLDER / f"{name}.svg", drawing(schedule)
        if path.exists() and path.read_text() == picture:
            continue
        stale.append(path.name)
        if not options.check:
            path.write_text(picture)
    if stale:
        print(("out of date: " if options.check else "drawn: ") + ", ".join(stale))
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
