"""Shared by the studies: runs of the program, systems with changed figures, tables as CSV and JSON."""
import argparse
import csv
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc)
    built = ROOT / "build" / "release" / "orrery"
    parser.add_argument("--program", default=str(built) if built.exists() else shutil.which("orrery") or str(built))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for CSV and JSON")
    return parser.parse_args()


class Program:
    def __init__(self, path, out):
        self.path, self.out = path, out

    def ask(self, *words):
        """The JSON document that a command prints. With exit code 1 (nothing fits) there is a document, too."""
        done = subprocess.run([self.path, *map(str, words), "--json"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        return json.loads(done.stdout)

    def estimate(self, model, cluster, batch, strategy, *more):
        return self.ask("estimate", "--semantics", "mad-max", "--model", model, "--cluster", cluster, "--global-batch",
                        batch, "--strategy", strategy, *more)

    def plan(self, model, cluster, batch, *more):
        return self.ask("plan", "--semantics", "mad-max", "--model", model, "--cluster", cluster, "--global-batch",
                        batch, "--top", 1, *more)

    def names(self, kind):
        return [entry["name"] for entry in self.ask("list", kind)["entries"]]

    def changed(self, cluster, name, change):
        """A file with the system `cluster` after `change` was applied to its description."""
        system = self.ask("describe", cluster)["entry"]
        system["name"] = name
        system.pop("sources", None)
        change(system)
        folder = self.out / "systems"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(system, indent=1) + "\n")
        return str(path)


def times(quantity, factor):
    """"25 GB/s" with another number."""
    number, unit = quantity.split(" ")
    return f"{float(number) * factor:.12g} {unit}"


def written(value):
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def publish(name, rows, out, shown):
    """Rows as name.csv and name.json; the columns `shown` as a table on standard output."""
    out.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0])
    with (out / f"{name}.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows([written(row[column]) for column in columns] for row in rows)
    (out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    cells = [shown] + [[written(row[column]) for column in shown] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(shown))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print(f"\n{len(rows)} rows: {out / name}.csv, .json")
