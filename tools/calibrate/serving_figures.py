"""Refits the fitted figures of engines (data/engines) with whole accelerators left out, and says what that costs.

  python3 tools/calibrate/serving_figures.py --program P --table data/measurements/serving.csv [--only KEY...] [--write]

Each figure (the two of grouped GEMMs as a pair) is chosen from its grid, the others as shipped, by the mean of |ln(predicted / measured)|,
at most ln 2 a row, of the TTFT, TPOT and throughput (closed loops that agree with Little's law) of rows that it changes. For each accelerator the choice is made without its rows, and its rows
are predicted with that choice: the error on an accelerator that was never calibrated. --only takes the figures with these keys, --write sets
the choice over all rows. Launch times of layers with experts run to the end of their grid, because they make up for prompts whose kernels
are priced too fast: they are studied, not written.
"""
import argparse
import csv
import itertools
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import tables  # noqa: E402

COLUMNS = {"tpot": ("tpot_p50_ms", "tpot_mean_ms"), "ttft": ("ttft_p50_ms", "ttft_mean_ms"), "throughput": ("output_tokens_per_s",)}
SHOWN = {"tpot": "TPOT", "ttft": "TTFT", "throughput": "tokens/s"}
ENGINES = ("vllm-v1", "sglang", "tensorrt-llm")
MOST = math.log(2.0)

# Engines, keys, values of each key.
FIGURES = [
    (ENGINES, ("expert_rate", "expert_math_rate"), (("0.55", "0.65", "0.75", "0.85", "1"), ("0.16", "0.2", "0.24", "0.28", "0.4"))),
    (ENGINES, ("expert_latency",), (("0 s", "0.5 us", "1 us", "1.5 us", "2 us", "3 us"),)),
    (("vllm-v1",), ("expert_layer_host",), (("0.4 ms", "0.6 ms", "0.8 ms", "1.1 ms"),)),
    (("vllm-v1",), ("expert_parallel_layer_host",), (("0.6 ms", "1.5 ms", "2 ms", "2.5 ms", "3 ms"),)),
    (("sglang",), ("expert_layer_host",), (("1 ms", "1.4 ms", "1.8 ms", "2.4 ms"),)),  # not of machines in serving_launch.cpp
    (("tensorrt-llm",), ("expert_layer_host",), (("1.2 ms", "1.6 ms", "2 ms", "2.5 ms"),)),
    (("sglang",), ("transfer_setup", "transfer_layer_host"), (("35 ms", "70 ms", "110 ms", "160 ms"), ("0 s", "0.17 ms", "0.33 ms", "0.5 ms"))),
    (("sglang",), ("draft_host",), (("0 s", "0.05 ms", "0.1 ms", "0.15 ms", "0.2 ms"),)),
    (ENGINES, ("token_host", "sequence_host"), (("40 us", "50 us", "55 us", "60 us"), ("0 s", "10 us", "15 us", "20 us", "25 us"))),
    (ENGINES, ("request_overhead",), (("10 ms", "15 ms", "20 ms", "25 ms", "30 ms"),)),
    *[((engine,), ("age_slowdown",), (("0", "0.005", "0.01", "0.015", "0.02", "0.03", "0.04", "0.05"),)) for engine in ENGINES],
    (("vllm-v0",), ("step_host",), (("6 ms", "9 ms", "12 ms", "16 ms"),)),
]


def with_value(text, key, value):
    text = re.sub(rf"(?m)^{key}: .*\n", "", text, count=1)
    return text.replace("\nsources:", f"\n{key}: {value}\nsources:", 1)


class Runs:
    """Predictions by the values of figures: (engine, key) -> value."""

    def __init__(self, program, data, table):
        self.program, self.data, self.table, self.known = program, pathlib.Path(data), table, {}
        self.rows = {row["id"]: row for row in tables.lines(table) if not tables.is_unscored(row)}

    def ratios(self, values):
        """Row id -> metric -> ln(predicted / measured)."""
        key = tuple(sorted(values.items()))
        if key not in self.known:
            self.known[key] = self._run(values)
        return self.known[key]

    def _counts(self, line):
        """Throughput: of closed loops, within 5 % of Little's law."""
        little = self.rows[line["id"]].get("little_ratio", "")
        return line["metric"] != "output_tokens_per_s" or (little != "" and 0.95 <= float(little) <= 1.05)

    def _run(self, values):
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder) / "data"
            shutil.copytree(self.data, data)
            for (engine, key), value in values.items():
                path = data / "engines" / f"{engine}.yaml"
                path.write_text(with_value(path.read_text(encoding="utf-8"), key, value), encoding="utf-8")
            out = pathlib.Path(folder) / "out.csv"
            subprocess.run([self.program, "validate", "--data", self.table, "--out", out], check=True,
                           stdout=subprocess.DEVNULL, env=dict(os.environ, ORRERY_DATA=str(data)))
            pairs = {}
            with open(out, newline="", encoding="utf-8") as stream:
                for line in csv.DictReader(stream):
                    if line["ape"] and line["id"] in self.rows and self._counts(line):
                        pairs.setdefault(line["id"], {})[line["metric"]] = float(line["predicted"]) / float(line["measured"])
        for row, of in pairs.items():
            found[row] = {kind: math.log(of[next(c for c in columns if c in of)])
                          for kind, columns in COLUMNS.items() if any(c in of for c in columns)}
        return {row: of for row, of in found.items() if of}


def choices(figure):
    """Values of a figure: dicts (engine, key) -> value."""
    engines, keys, grids = figure
    return [{(engine, key): value for engine in engines for key, value in zip(keys, point)}
            for point in itertools.product(*grids)]


def changed(runs, figure):
    """Rows whose predictions depend on the figure."""
    first, *others = (runs.ratios(choice) for choice in choices(figure))
    return {row for row in first if any(abs(other[row][kind] - first[row][kind]) > 1e-3 for other in others for kind in first[row])}


def best(runs, figure, rows):
    def loss(choice):
        ratios = runs.ratios(choice)
        errors = [min(MOST, abs(value)) for row in rows for value in ratios[row].values()]
        return statistics.fmean(errors) if errors else 0.0
    return min(choices(figure), key=loss)


def median_error(ratios, rows, kind):
    errors = [abs(math.exp(ratios[row][kind]) - 1.0) for row in rows if kind in ratios[row]]
    return 100.0 * statistics.median(errors) if errors else float("nan")


def table_line(name, rows, ratios):
    cells = []
    for kind in COLUMNS:
        errors = [median_error(of, rows, kind) for of in ratios]
        cells.append(f"{errors[0]:14.1f} % {errors[1]:5.1f} % {errors[2]:7.1f} %")
    return f"{name:12} {len(rows):5} " + " ".join(cells)


def values_without(runs, left_out, figures):
    values = {}
    for figure in figures:
        rows = {row for row in changed(runs, figure) if runs.rows[row]["gpu_type"] != left_out}
        if rows:
            values.update(best(runs, figure, rows))
    return values


def text_of(values):
    return "; ".join(f"{engine} {key} {value}" for (engine, key), value in values.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--data", default=str(ROOT / "data"))
    parser.add_argument("--table", required=True)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    figures = [figure for figure in FIGURES if not options.only or set(figure[1]) & set(options.only)]
    runs = Runs(options.program, options.data, options.table)
    whole = values_without(runs, None, figures)
    shipped, chosen = runs.ratios({}), runs.ratios(whole)
    print("all rows:", text_of(whole))
    print(f"{'left out':12} {'rows':>5} " + " ".join(f"{SHOWN[kind] + ' shipped':>16} {'all':>7} {'left out':>9}" for kind in COLUMNS))
    unseen = {}
    for accelerator in sorted({runs.rows[row]["gpu_type"] for row in shipped}):
        rows = [row for row in shipped if runs.rows[row]["gpu_type"] == accelerator]
        values = values_without(runs, accelerator, figures)
        ratios = runs.ratios(values)
        unseen.update({row: ratios[row] for row in rows})
        print(table_line(accelerator, rows, (shipped, chosen, ratios)))
        print("             ", text_of({key: value for key, value in values.items() if whole.get(key) != value}) or "same figures")
    print(table_line("all", list(shipped), (shipped, chosen, unseen)))
    if options.write:
        for (engine, key), value in whole.items():
            path = pathlib.Path(options.data) / "engines" / f"{engine}.yaml"
            path.write_text(with_value(path.read_text(encoding="utf-8"), key, value), encoding="utf-8")


if __name__ == "__main__":
    main()
