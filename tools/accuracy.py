#!/usr/bin/env python3
"""Writes docs/accuracy.md: predicted and measured times of published rows, with plots.

  tools/accuracy.py --program build/release/orrery --tables DIR... [--residuals F.csv...]

Tables are in the format of `orrery validate --data`. --residuals: files of residuals from tools/calibrate. A row in one of
them has a held-out prediction: by a fit without its configuration. All other rows were not used in any fit.
"""
import argparse
import collections
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import accuracy_plot  # noqa: E402
from calibrate import errors, spread, tables  # noqa: E402

MIXTURES = ("dlrm_moe.csv", "moe.csv")
KINDS = (("training", ("training.csv", "training_vtrain_single_node.csv", "lora.csv")),
         ("dlrm_moe", MIXTURES), ("parts", MIXTURES), ("inference", ("inference.csv",)), ("kernels", ("kernels.csv",)),
         ("collectives", ("collectives.csv",)), ("commands", ("commands.csv",)), ("pytorch", ("pytorch_kernels.csv", "pytorch.csv")))
TITLES = {"training": "Training steps, dense models", "dlrm_moe": "Training steps, mixtures of experts and recommenders",
          "parts": "Parts of a mixture's training step",
          "inference": "Batches of requests", "kernels": "Single kernels", "collectives": "Collectives",
          "commands": "Ten sources added last: steps, batches, kernels",
          "pytorch": "Measured on one H100 and one H200: kernels, prompts, steps"}
NOT_SCORED = {"memory_unverified"}
MIB = 1 << 20


def is_part(row):
    """Whether it measures a pass over one layer, a dispatch or a combine."""
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
    """Collectives are split by size: small ones are bound by latency, large ones by bandwidth."""
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
    text = ["| family | rows | skipped | scored | fitted to | mean | mean, held out | median | median, held out | p90 | bias | in 80 % interval |",
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


HEAD = """# Accuracy

**How far are predictions from published measurements?** `tools/accuracy.py` writes this page (tables and plots).
Inference servers are on [another page](accuracy-serving.md).
[Validation](models/validation.md) defines how a row becomes a prediction and what the prediction may depend on.

- **Scored** rows have a measurement and a prediction. Of several releases of one configuration, the newest is scored.
- **Held out**: if values of the catalogue were fitted to a family ([calibration](../tools/calibrate/README.md)), the error of a
  fit that has not seen the row's configuration. "Fitted to" is the number of rows that were used for fitting. A family without
  this number was never used for fitting, and both columns are equal.
- **Of other sources**: rows of publications and campaigns that no figure was fitted to. This is what to expect of a job of your
  own. All collectives were fitted together.
- **In 80 % interval**: share of measurements inside the `uncertainty` of the estimate. An interval is as wide as it has to be for
  80 % of the rows of a source that nothing was fitted to ([validation](models/validation.md#ranges)); of fitted sources more rows
  are inside.
- **Bias**: mean of signed errors; negative means that predictions are too fast.
- **Parts of a mixture's training step** are passes over one layer of experts, and dispatch and combine alone.
- In plots, a bar spans the measurements of one configuration (repeats, vendors, releases); dashed lines are 20 % error.
"""


IN_SAMPLE = """
**This page was written without held-out predictions** (no `--residuals`): values of the catalogue were fitted to some of these
families (their `sources` state which, and the error on held-out configurations), and the columns "held out" repeat the
others.
"""


def section(kind, scored, counts, folder):
    text = ["", f"## {TITLES[kind]}", "", *table_text(scored, counts)]
    if scored:
        plot = folder / f"{kind}.svg"
        plot.write_text(accuracy_plot.svg(scored, TITLES[kind]), encoding="utf-8")
        text += ["", f"![Predicted and measured: {TITLES[kind]}](accuracy/{kind}.svg)", "", "Largest errors:", "",
                 *worst_text(scored)]
    skipped = skipped_text(counts)
    if skipped:
        text += ["", "Skipped:", "", *skipped]
    return text


def summary(parts, held_out):
    mean = "mean error, held out" if held_out else "mean error"
    fitted = spread.fitted_families(ROOT / "data")
    text = ["", f"| | rows | median error | {mean} | of other sources: rows | median | mean | in 80 % interval |",
            "|---|---|---|---|---|---|---|---|"]
    for kind, scored, _ in parts:
        if not scored:
            continue
        held = errors.errors([line.held for line in scored], [line.measured for line in scored])
        ranged = [line.inside for line in scored if line.inside is not None]
        within = f"{100 * sum(ranged) / len(ranged):.0f} %" if ranged else ""
        free = [line for line in scored if kind != "collectives" and line.family not in fitted]
        other = errors.errors([line.predicted for line in free], [line.measured for line in free]) if free else None
        others = f"{len(free)} | {percent(other.median)} | {percent(other.mean)}" if other else " | |"
        text.append(f"| {TITLES[kind][0].lower() + TITLES[kind][1:]} | {len(scored)} | {percent(held.median)} | {percent(held.mean)} | {others} | {within} |")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--tables", nargs="+", default=[str(ROOT / "data/measurements")])
    parser.add_argument("--residuals", nargs="*", default=[])
    options = parser.parse_args()
    known, folder = tables.held_out(options.residuals), ROOT / "docs/accuracy"
    folder.mkdir(exist_ok=True)
    parts = [(kind, *lines_of(options, kind, names, known)) for kind, names in KINDS]
    text = [HEAD.rstrip()] + ([] if known else [IN_SAMPLE.rstrip()]) + summary(parts, bool(known))
    for kind, scored, counts in parts:
        if counts:
            text += section(kind, scored, counts, folder)
    notes = (folder / "known-failures.md").read_text(encoding="utf-8") if (folder / "known-failures.md").exists() else ""
    if notes:
        text += ["", notes.rstrip()]
    (ROOT / "docs/accuracy.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
