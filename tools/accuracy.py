#!/usr/bin/env python3
"""Writes docs/accuracy.md: predicted against measured times of published rows, with plots, and its summary in README.md.

  tools/accuracy.py --program build/release/orrery --tables DIR... [--residuals F.csv...]

Tables are those that `orrery validate --data` reads. --residuals: what tools/calibrate wrote of its fits; rows that are
in one have a prediction by a fit that has not seen their configuration, all others have never been fitted to.
"""
import argparse
import collections
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import accuracy_plot  # noqa: E402
from calibrate import errors, tables  # noqa: E402

MIXTURES = ("dlrm_moe.csv", "moe.csv")
KINDS = (("training", ("training.csv", "training_vtrain_single_node.csv", "lora.csv")),
         ("dlrm_moe", MIXTURES), ("parts", MIXTURES), ("inference", ("inference.csv",)), ("kernels", ("kernels.csv",)),
         ("collectives", ("collectives.csv",)))
TITLES = {"training": "Steps of training, dense models", "dlrm_moe": "Steps of training, mixtures and recommenders",
          "parts": "Parts of a mixture's step",
          "inference": "Batches of requests", "kernels": "Single kernels", "collectives": "Collectives"}
NOT_SCORED = {"memory_unverified"}
MIB = 1 << 20


def is_part(row):
    """By what it measures: a pass over one layer, or tokens on their way to experts and back."""
    return row.cells.get("metric", "").startswith(("forward_time", "backward_time", "dispatch_", "combine_"))


class Line:
    """A scored row: measured, predicted, and predicted by a fit that has not seen its configuration."""

    def __init__(self, row, said, held):
        self.row, self.family = row, row.family
        self.measured = float(said["measured"])
        self.predicted = float(said["predicted"])
        self.fitted = held is not None
        self.held = held if held is not None else self.predicted
        low, high = said.get("p10_s"), said.get("p90_s")
        self.inside = float(low) <= self.measured <= float(high) if low and high else None


def family_of(row):
    """Collectives are told apart by size: small ones are latency, large ones bandwidth."""
    size = row.cells.get("size_bytes")
    if not size:
        return row.family
    return f"{row.family} {'>=' if float(size) >= MIB else '<'} 1 MiB"


def lines_of(options, kind, names, known):
    """Scored rows, and {family: (rows, {reason: how many})} of all."""
    scored, counts = [], collections.OrderedDict()
    for path in tables.files(options.tables, names):
        said = {line["id"]: line for line in tables.predictions(options.program, path)}
        rows = [row for row in tables.read([path]) if row.family not in NOT_SCORED]
        if names is MIXTURES:
            rows = [row for row in rows if is_part(row) == (kind == "parts")]
        newest = {id(row) for row in tables.newest(rows)}
        for row in rows:
            row.family = family_of(row)
            total, reasons = counts.setdefault(row.family, [0, collections.Counter()])
            counts[row.family][0] = total + 1
            line = said.get(row.cells.get("id", ""))
            if not line or line["skipped_reason"]:
                reasons[(line or {}).get("skipped_reason", "")[:70]] += 1
            elif line["measured"] and id(row) in newest:
                scored.append(Line(row, line, known.get((path.name, line["id"]))))
    return scored, counts


def percent(fraction):
    return f"{100 * fraction:.1f} %"


def family_rows(scored, counts):
    for family, (total, reasons) in counts.items():
        of = [line for line in scored if line.family == family]
        inside = errors.errors([line.predicted for line in of], [line.measured for line in of])
        held = errors.errors([line.held for line in of], [line.measured for line in of])
        fitted = sum(line.fitted for line in of)
        ranged = [line.inside for line in of if line.inside is not None]
        yield family, total, sum(reasons.values()), of, inside, held, fitted, ranged


def table_text(scored, counts):
    text = ["| family | rows | skipped | scored | fitted to | mean | mean, held out | median | median, held out | p90 | bias | in range |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for family, total, skipped, of, inside, held, fitted, ranged in family_rows(scored, counts):
        if not of:
            text.append(f"| {family} | {total} | {skipped} | 0 | | | | | | | | |")
            continue
        within = f"{100 * sum(ranged) / len(ranged):.0f} %" if ranged else ""
        text.append(f"| {family} | {total} | {skipped} | {len(of)} | {fitted or ''} | {percent(inside.mean)} | "
                    f"{percent(held.mean)} | {percent(inside.median)} | {percent(held.median)} | {percent(held.p90)} | "
                    f"{100 * held.bias:+.1f} % | {within} |")
    return text


def worst_text(scored):
    worst = sorted(scored, key=lambda line: -abs(line.predicted / line.measured - 1))[:8]
    text = ["| row | family | measured | predicted | error |", "|---|---|---|---|---|"]
    for line in worst:
        text.append(f"| {line.row.cells.get('id', '')} | {line.family} | {line.measured:.4g} s | {line.predicted:.4g} s | "
                    f"{100 * (line.predicted / line.measured - 1):+.0f} % |")
    return text


def skipped_text(counts):
    reasons = collections.Counter()
    for _, of in counts.values():
        reasons.update(of)
    return [f"- {count} rows: {reason}" for reason, count in reasons.most_common()]


HEAD = """# How accurate it is

Predicted against measured times of published rows, written by one command: `tools/accuracy.py` (tables, plots and the
summary in the README). [Validation](models/validation.md) says how a row becomes a prediction and what it may not see.

- **Scored** are rows that have a measurement and a prediction; of several releases of one configuration the newest.
- **Held out**: where figures of the catalogue were fitted to a family ([calibration](../tools/calibrate/README.md)), the
  error of a fit that has not seen the row's configuration; "fitted to" counts those rows. Families without a count have
  never been fitted to, and both columns are the same.
- **In range**: measurements within the `uncertainty` that the estimate carries; four of five are meant to.
- **Bias**: mean of signed errors; negative: predictions are too fast.
- **Parts of a mixture's step** are passes over one layer of experts, and tokens on their way to experts and back, by themselves.
- In plots, a bar spans what rows of one configuration measured (repeats, vendors, releases); dashed lines are 20 % off.
"""


IN_SAMPLE = """
**This page was written without held-out predictions** (no `--residuals`): figures of the catalogue were fitted to some of these
families (their `sources` say which and with what error on configurations held out), and the columns "held out" repeat the
others.
"""


def section(kind, scored, counts, folder):
    text = ["", f"## {TITLES[kind]}", "", *table_text(scored, counts)]
    if scored:
        plot = folder / f"{kind}.svg"
        plot.write_text(accuracy_plot.svg(scored, TITLES[kind]), encoding="utf-8")
        text += ["", f"![Predicted against measured: {TITLES[kind]}](accuracy/{kind}.svg)", "", "Largest errors:", "",
                 *worst_text(scored)]
    skipped = skipped_text(counts)
    if skipped:
        text += ["", "Skipped:", "", *skipped]
    return text


def summary(parts, held_out):
    mean = "mean error, held out" if held_out else "mean error"
    text = [f"| what | rows | median error | {mean} | measurements in range |", "|---|---|---|---|---|"]
    for kind, scored, _ in parts:
        if not scored:
            continue
        held = errors.errors([line.held for line in scored], [line.measured for line in scored])
        ranged = [line.inside for line in scored if line.inside is not None]
        within = f"{100 * sum(ranged) / len(ranged):.0f} %" if ranged else ""
        text.append(f"| {TITLES[kind].lower()} | {len(scored)} | {percent(held.median)} | {percent(held.mean)} | {within} |")
    return "\n".join(text)


def write_readme(path, table):
    begin, end = "<!-- accuracy -->", "<!-- /accuracy -->"
    text = path.read_text(encoding="utf-8")
    if begin not in text:
        print(f"{path.name} has no {begin}", file=sys.stderr)
        return
    head, rest = text.split(begin, 1)
    path.write_text(f"{head}{begin}\n{table}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--tables", nargs="+", default=[str(ROOT / "data/validation")])
    parser.add_argument("--residuals", nargs="*", default=[])
    options = parser.parse_args()
    known, folder = tables.held_out(options.residuals), ROOT / "docs/accuracy"
    folder.mkdir(exist_ok=True)
    parts = [(kind, *lines_of(options, kind, names, known)) for kind, names in KINDS]
    text = [HEAD.rstrip()] + ([] if known else [IN_SAMPLE.rstrip()])
    for kind, scored, counts in parts:
        if counts:
            text += section(kind, scored, counts, folder)
    notes = (folder / "known-failures.md").read_text(encoding="utf-8") if (folder / "known-failures.md").exists() else ""
    if notes:
        text += ["", notes.rstrip()]
    (ROOT / "docs/accuracy.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    write_readme(ROOT / "README.md", summary(parts, bool(known)))


if __name__ == "__main__":
    main()
