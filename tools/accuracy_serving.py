#!/usr/bin/env python3
"""Writes docs/accuracy-serving.md: predicted and measured figures of inference servers, with plots.

  tools/accuracy_serving.py [--program build/release/orrery]

The rows are those of data/measurements/serving.csv, the predictions those of `orrery validate --data serving`. The figure of a
row is its p50, where one was measured, else its mean.
"""
import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import accuracy_plot  # noqa: E402
from calibrate import errors, tables  # noqa: E402

FIGURES = {"TTFT": ("ttft_p50_ms", "ttft_mean_ms"), "TPOT": ("tpot_p50_ms", "tpot_mean_ms"),
           "throughput": ("output_tokens_per_s",)}
LITTLE = (0.8, 1.1)  # output rate x E2E over output tokens x clients
LEAST = 9            # rows of a plot, and of a line of the longest table
UNITS = {"TTFT": "ms", "TPOT": "ms", "throughput": "tokens/s"}

HEAD = """# Accuracy of serving

**How far are the figures of `orrery serve` from published measurements of inference servers?** `tools/accuracy_serving.py` writes this page
from `orrery validate --data serving`. [Serving](models/serving.md#rows-of-measurements) says how a row becomes a deployment and a load, and
[which figures were fitted](models/serving.md#accuracy) to some of these rows; errors on accelerators that were left out of the fit are there, too.

- A row's figure is its p50, where one was measured, else its mean. Throughput is of rows whose output rate, E2E and clients agree (Little's law).
- **Median**: of |predicted - measured| / measured. **Bias**: the median of predicted / measured. **In 80 %**: share of measurements inside the
  interval of the prediction.
- In plots, dashed lines are 20 % error; a bar spans measurements with one prediction.
- Throughput on H200 has one source, nine rows of gpt-oss on 2, 4 and 8 GPUs (nebius_h200), whose authors call those on 8 unexpectedly slow.
- Skipped rows have their reasons at the end of the page. Rows with a reason in the column `unscored` are not scored.
"""

Line = collections.namedtuple("Line", "family row figure measured predicted inside")


def run(program, folder):
    out = pathlib.Path(folder) / "out.csv"
    done = subprocess.run([program, "validate", "--data", "serving", "--json", "--out", out], check=True, capture_output=True)
    answer = json.loads(done.stdout)
    with open(out, newline="", encoding="utf-8") as stream:
        return answer, list(csv.DictReader(stream))


def is_scored(row, figure):
    if tables.is_unscored(row):
        return False
    return figure != "throughput" or LITTLE[0] <= float(row["little_ratio"] or 0) <= LITTLE[1]


def lines_of(rows, said):
    """Scored figures of rows."""
    known = {(line["id"], line["metric"]): line for line in said if line["measured"] and line["predicted"]}
    for row in rows:
        for figure, columns in FIGURES.items():
            line = next((known[row["id"], column] for column in columns if (row["id"], column) in known), None)
            if line and is_scored(row, figure):
                measured, predicted = float(line["measured"]), float(line["predicted"])
                inside = float(line["p10_s"]) <= measured <= float(line["p90_s"]) if line["p10_s"] else None
                yield Line(row["family"], row, figure, measured, predicted, inside)


def cells_of(lines):
    """Median error, bias and coverage of one figure."""
    if not lines:
        return ["", "", ""]
    found = errors.errors([line.predicted for line in lines], [line.measured for line in lines])
    bias = errors.median(sorted(line.predicted / line.measured for line in lines))
    ranged = [line.inside for line in lines if line.inside is not None]
    return [f"{100 * found.median:.1f} %", f"{bias:.2f}", f"{100 * sum(ranged) / len(ranged):.0f} %" if ranged else ""]


def table_of(title, lines, name_of, least=1):
    """A line for each name, in the order of the number of its rows."""
    groups = collections.defaultdict(list)
    for line in lines:
        groups[name_of(line.row)].append(line)
    rows_of = {name: len({line.row["id"] for line in of}) for name, of in groups.items()}
    text = ["", f"| {title} | rows | TTFT median | bias | in 80 % | TPOT median | bias | in 80 % | throughput rows | median | bias |",
            "|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, of in sorted(groups.items(), key=lambda item: (-rows_of[item[0]], item[0])):
        if rows_of[name] < least:
            continue
        by = {figure: [line for line in of if line.figure == figure] for figure in FIGURES}
        rates = cells_of(by["throughput"])[:2]
        text.append("| " + " | ".join([name, str(rows_of[name]), *cells_of(by["TTFT"]), *cells_of(by["TPOT"]),
                                       str(len(by["throughput"]) or ""), *rates]) + " |")
    return text


def worst_of(lines, figure):
    worst = sorted((line for line in lines if line.figure == figure), key=lambda line: -abs(line.predicted / line.measured - 1))[:8]
    text = ["", f"| row | deployment | measured {figure} | predicted | error |", "|---|---|---|---|---|"]
    for line in worst:
        group = line.row["config_group"].replace("|", ", ")
        text.append(f"| {line.row['id']} | {group} | {line.measured:.4g} {UNITS[figure]} | {line.predicted:.4g} {UNITS[figure]} | "
                    f"{100 * (line.predicted / line.measured - 1):+.0f} % |")
    return text


def summary_of(answer):
    text = ["", "| | rows | median | configurations x loads | median of \\|ln(predicted / measured)\\|, one weight for each |",
            "|---|---|---|---|---|"]
    for score in answer["serving"]:
        text.append(f"| {score['figure']} | {score['rows']} | {100 * score['median_ape']:.1f} % | {score['configurations_and_loads']} | "
                    f"{100 * score['grouped_median_log_error']:.1f} % |")
    return text


def skipped_of(said):
    reasons = collections.Counter()
    for row, reason in {(line["id"], line["skipped_reason"]) for line in said if line["skipped_reason"]}:
        reasons[reason] += 1
    return [f"- {count} row{'s' if count > 1 else ''}: {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
            if not reason.startswith("no value")]


def plots(lines, folder):
    text = []
    for figure in ("TTFT", "TPOT"):
        of = [accuracy_plot_line(line) for line in lines if line.figure == figure]
        counts = collections.Counter(line.family for line in of)
        of = [line for line in of if counts[line.family] >= LEAST]
        of.sort(key=lambda line: (-counts[line.family], line.family))
        title = f"{figure} by accelerator"
        name = f"serving-{figure.lower()}.svg"
        (folder / name).write_text(accuracy_plot.svg(of, title), encoding="utf-8")
        text += ["", f"![Predicted and measured: {title}](accuracy/{name})"]
    return text


def accuracy_plot_line(line):
    """In seconds, by accelerator."""
    return line._replace(family=line.row["gpu_type"], measured=line.measured / 1e3, predicted=line.predicted / 1e3)


def engine_of(row):
    pools = "pools of " if row["mode"] == "disagg" else ""
    name = row["engine"].lower()
    engine = next((known for key, known in (("sglang", "SGLang"), ("trt", "TensorRT-LLM"), ("tensorrt", "TensorRT-LLM")) if key in name), "vLLM")
    return pools + engine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    options = parser.parse_args()
    rows = tables.lines(ROOT / "data/measurements/serving.csv")
    with tempfile.TemporaryDirectory() as folder:
        answer, said = run(options.program, folder)
    lines = list(lines_of(rows, said))
    text = [HEAD.rstrip(), *summary_of(answer), *plots(lines, ROOT / "docs/accuracy")]
    text += ["", "## By accelerator", *table_of("accelerator", lines, lambda row: row["gpu_type"])]
    text += ["", "## By engine", *table_of("engine", lines, engine_of)]
    text += ["", "## By model", *table_of("model", lines, lambda row: row["model_key"])]
    text += ["", "## By source", *table_of("source", lines, lambda row: row["family"])]
    text += ["", "## By source, engine and accelerator", "", f"Those with {LEAST} rows or more.",
             *table_of("source", lines, lambda row: f"{row['family']}, {row['engine']}, {row['gpu_type']}", LEAST)]
    text += ["", "## Largest errors", *worst_of(lines, "TTFT"), *worst_of(lines, "TPOT"), *worst_of(lines, "throughput")]
    text += ["", "## Skipped", "", *skipped_of(said)]
    (ROOT / "docs/accuracy-serving.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
