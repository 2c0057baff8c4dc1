"""Writes data/uncertainty.yaml: how far measured times lie from predicted ones, by kind of job.

  python3 tools/calibrate/spread.py --program build/release/orrery --tables DIR... [--residuals F.csv...] [--write]

A row's prediction is the one of the fit that has not seen its configuration, where --residuals (written by
tools/calibrate) has it, and the program's where no fit used the row. Quantiles are those of measured / predicted. How
often they hold is measured on configurations that they were not taken from, in five folds, and they are taken further out
until that is four of five.
"""
import argparse
import math
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import tables  # noqa: E402

TABLES = ("training.csv", "training_vtrain_single_node.csv", "lora.csv", "moe.csv", "dlrm_moe.csv", "inference.csv")
# Their authors say that they are off by tens of percent, or the time is derived from other figures.
NOT_COUNTED = {"bigscience_v100", "llama3_405b", "memory_unverified"}
FEWEST_ROWS, FEWEST_GROUPS = 15, 5
TAILS = (0.10, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01)  # on either side
WANTED = 0.78


def quantile(ordered, part):
    """Between the two nearest of n values at (i + 1) / (n + 1): wider with few rows."""
    place = min(max(part * (len(ordered) + 1) - 1, 0), len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def bounds(ratios, tail):
    ordered = sorted(ratios)
    return quantile(ordered, tail), quantile(ordered, 1 - tail)


def ratios(options):
    """[(kind, row, measured / predicted)] of what is scored."""
    known, found = tables.held_out(options.residuals), []
    for path in tables.files(options.tables, TABLES):
        rows = tables.read([path])
        predicted = {line["id"]: line for line in tables.predictions(options.program, path)}
        for row in tables.newest(rows):
            line = predicted.get(row.cells.get("id", ""))
            if row.family in NOT_COUNTED or not line or not line["predicted"] or not line["measured"]:
                continue
            if not line["spread"]:  # a part of a job
                continue
            time = known.get((path.name, line["id"]), float(line["predicted"]))
            found.append((line["spread"], row, float(line["measured"]) / time))
    return found


def coverage(members, tail):
    """Part of the ratios within bounds taken from other configurations."""
    fold_of = tables.folds([row for _, row, _ in members], 5)
    inside = 0
    for fold in range(5):
        others = [ratio for (_, _, ratio), of in zip(members, fold_of) if of != fold]
        if not others:
            continue
        low, high = bounds(others, tail)
        inside += sum(1 for (_, _, ratio), of in zip(members, fold_of) if of == fold and low <= ratio <= high)
    return inside / len(members)


def widened(members):
    """The first tail whose bounds hold for enough of the configurations that they were not taken from, and for how many:
    rows of few configurations do not predict the next one well."""
    for tail in TAILS:
        held = coverage(members, tail)
        if held >= WANTED:
            break
    return tail, held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--data", default=str(ROOT / "data"))
    parser.add_argument("--tables", nargs="+", default=[str(ROOT / "data/measurements")])
    parser.add_argument("--residuals", nargs="*", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = ratios(options)
    lines, said = [], []
    kinds = {kind for kind, _, _ in found} - {""}
    for kind in sorted(kinds | {kind.split(" ")[0] for kind in kinds}) + ["any"]:
        members = [one for one in found if kind in ("any", one[0], one[0].split(" ")[0])]
        groups = len({row.group for _, row, _ in members})
        if len(members) < FEWEST_ROWS or groups < FEWEST_GROUPS:
            print(f"{kind}: {len(members)} rows of {groups} groups are too few")
            continue
        tail, held = widened(members)
        low, high = bounds([ratio for _, _, ratio in members], tail)
        print(f"{kind:40} {len(members):5} rows {groups:4} groups  {low:.3f} to {high:.3f}, holds for {100 * held:.0f} %")
        said.append(f"{kind} {100 * held:.0f} %")
        lines += [f"  - kind: {kind}", f"    p10: {low:.3f}", f"    p90: {high:.3f}", f"    rows: {len(members)}",
                  f"    groups: {groups}"]
    if options.write:
        text = "\n".join(["# Quantiles of measured / predicted; written by tools/calibrate/spread.py.", "kinds:", *lines,
                          f'source: "published rows of docs/accuracy.md; on configurations held out the ranges hold '
                          f'for: {", ".join(said)}"']) + "\n"
        (pathlib.Path(options.data) / "uncertainty.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
