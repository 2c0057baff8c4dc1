"""Writes the intervals of serving predictions into data/uncertainty.yaml: TTFT, TPOT and throughput.

  python3 tools/calibrate/serving_spread.py --program build/release/orrery [--table data/measurements/serving.csv] [--write]

The intervals are those of spread.py. A source is a campaign's engine on an accelerator: its releases, its kernels and its launch
settings are what a prediction does not know. Medians where they were measured, else means; throughput only of rows where Little's law
holds.
"""
import argparse
import collections
import csv
import math
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import spread, tables  # noqa: E402

COLUMNS = {"ttft": ("ttft_p50_ms", "ttft_mean_ms"), "tpot": ("tpot_p50_ms", "tpot_mean_ms"),
           "throughput": ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s")}
LITTLE = (0.8, 1.1)  # output rate x E2E over output x clients


def predictions(program, table):
    """Row id -> metric -> (measured, predicted)."""
    found = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.csv"
        subprocess.run([program, "validate", "--data", table, "--out", out], check=True, stdout=subprocess.DEVNULL)
        with open(out, newline="", encoding="utf-8") as stream:
            for line in csv.DictReader(stream):
                if line["measured"] and line["predicted"]:
                    found[line["id"]][line["metric"]] = float(line["measured"]), float(line["predicted"])
    return found


def ratios(program, table):
    found = predictions(program, table)
    for row in tables.lines(table):
        source = " ".join((row["family"], row["engine"], row["gpu_type"]))
        little = float(row["little_ratio"] or 0)
        for kind, columns in COLUMNS.items():
            if tables.is_unscored(row) or (kind == "throughput" and not LITTLE[0] <= little <= LITTLE[1]):
                continue
            pair = next((found[row["id"]][column] for column in columns if column in found[row["id"]]), None)
            if pair:
                yield spread.Ratio(kind, "", source, math.log(pair[0] / pair[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--data", default=str(ROOT / "data"))
    parser.add_argument("--table", default=str(ROOT / "data/measurements/serving.csv"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found, lines = list(ratios(options.program, options.table)), []
    for kind in COLUMNS:
        lines += spread.lines_of(f"serving {kind}", [one for one in found if one.kind == kind], set(), [])
    if options.write:
        path = pathlib.Path(options.data) / "uncertainty.yaml"
        path.write_text(spread.with_serving(path.read_text(encoding="utf-8"), lines), encoding="utf-8")


if __name__ == "__main__":
    main()
