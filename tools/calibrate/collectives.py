"""Fits the figures of link classes in data/links to nccl-tests sweeps.

    python3 tools/calibrate/collectives.py --program build/release/orrery --table collectives.csv [--write]

Figures of one library differ between links by few things: how fast a kernel's step is on the accelerator or the NIC
(one factor for each generation of link), and which part of the link long messages reach. Everything else (what a launch,
a step of each protocol, a switch's pass take, in units of that factor; which part of the link each protocol fills) is the
same for all NVLinks, and for all networks. So few parameters make all figures, and a generation that no row has seen
takes those of its next relative.

Predictions are the program's (`calibrate.program` says how), the solver is `calibrate.fit`. Held out: five folds by
`config_group`, each fitted from the priors to the end without it, as if its rows had never been measured.
"""
import argparse
import collections
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from calibrate import figures, fit, tables  # noqa: E402

LARGE = 1 << 20
FOLDS = 5
WORKERS = 2
MOST_PARAMETERS = 20  # rows for each
STEPS = 60
ENOUGH = 1e-5  # of the objective, relative: where a fit ends must not depend on where it began

# name: (low, prior, high). Priors do not depend on the rows: latencies are NCCL's tuner's, with what a network's plugin
# reports to it; RoCE and TCPX are guesses, speeds of NVLinks equal, efficiencies common ones. A figure that no row
# determines keeps its prior. EFA: a step has 5 us and, on EFA 1, the 75 us that its plugin reports (aws/aws-ofi-nccl
# src/platform-aws.c@a21f4dfdeb), so 16 times 5 us; on EFA 2 the 20 us of the plugin's own tuner, which chooses there
# (include/nccl_ofi_tuner.h@16fe0e11a8), so 5 times.
PARAMETERS = {
    # NVLink: seconds are us where speed is 1, which is that of NVLink 4
    "speed.nvlink3": (0.5, 1.0, 3), "speed.nvlink5": (0.5, 1.0, 3),
    "base": (2, 6.6, 12), "step.LL": (0.3, 0.6, 1.5), "step.LL128": (0.4, 1.25, 2.5), "step.Simple": (2, 3.4, 12),
    "exchange.LL": (0.01, 0.6, 4), "switch.base": (10, 25, 80), "message": (3, 7.2, 12),
    "fraction.LL": (0.01, 0.1, 0.5), "fraction.LL128": (0.3, 0.7, 0.95), "own.LL": (0.2, 0.7, 1.0),
    "own.Simple": (0.2, 0.7, 1.0),
    "efficiency.nvlink3": (0.6, 0.8, 0.95), "efficiency.nvlink4": (0.6, 0.8, 0.95),
    "efficiency.nvlink5": (0.6, 0.8, 0.95),
    # networks: us where speed is 1, which is that of InfiniBand
    "net.speed.roce": (0.3, 1.5, 10), "net.speed.efa1": (0.5, 16, 30), "net.speed.efa2": (0.5, 5.0, 10),
    "net.base": (4, 8.4, 40), "net.step.LL": (1, 5.0, 20), "net.step.LL128": (1, 8.5, 30),
    "net.over.Simple": (1.0, 1.65, 6),  # a step of Simple over one of LL128, which is the shorter
    "net.fraction.LL": (0.01, 0.1, 0.6), "net.fraction.LL128": (0.3, 0.8, 0.97),
    "net.efficiency.ib": (0.6, 0.9, 0.97), "net.efficiency.roce": (0.6, 0.9, 0.97),
    "net.efficiency.efa1": (0.6, 0.9, 0.97), "net.efficiency.efa2": (0.6, 0.9, 0.97),
    "tcpx.step": (20, 50, 900), "tcpx.efficiency": (0.5, 0.8, 0.97),
    "host.step": (2, 14, 80), "host.efficiency": (0.3, 0.8, 1.0), "host.message": (5, 22.4, 90),
}
# A deviation by this factor costs 1 in the objective, as 3.5 rows that take twice the measured time. Without those of EFA, the
# scale of all networks' steps is not determined: their speeds are relative to InfiniBand's. A step of each protocol is that of
# NCCL's tuner for networks of any make, so it weighs less than what a plugin states for its own.
SPREADS = {"net.speed.efa1": 2.0, "net.speed.efa2": 2.0,
           "net.step.LL": 4.0, "net.step.LL128": 4.0, "net.over.Simple": 4.0}
# us: the library's switch to a wider protocol. Jumps are no slopes, so it is read off where sweeps jump: for rings in one
# node between shards of 0.25 and 0.5 MiB at 300 GB/s, 0.5 and 1 at 450, 1 and 2 at 900, hence between 1.17 and 1.75.
UNTIL = 1.45
# us: of every further peer in an all-to-all, read off sweeps over the devices of a node: 512 B take 9.2, 10.2, 10.7 us on 2, 4, 8
# B200 and 6.7, 7.8 us on 4, 8 H100.
EXCHANGE_PEER = 0.25

NVLINKS = {  # file: (speed, efficiency, its switch reduces)
    "nvlink2": ("nvlink3", "nvlink3", False), "nvlink3": ("nvlink3", "nvlink3", False),
    "nvlink4": (None, "nvlink4", True), "nvlink4-h800": (None, None, True), "nvlink4-pairs": (None, "nvlink4", False),
    "nvlink5": ("nvlink5", "nvlink5", True), "nvlink5-nvl72": ("nvlink5", "nvlink5", True),
    "nvlink-c2c": (None, None, False),
}
NETWORKS = {  # file: (speed, efficiency)
    "infiniband-edr": (None, None), "infiniband-hdr": (None, "ib"), "infiniband-ndr": (None, "ib"),
    "infiniband-xdr": (None, "ib"), "roce": ("roce", None), "roce-100": ("roce", None), "roce-200": ("roce", None),
    "roce-400": ("roce", "roce"), "roce-800": ("roce", "roce"),
    "aws-efa-v1": ("efa1", "efa1"), "aws-efa-v2": ("efa2", "efa2"), "aws-efa-v3": ("efa2", None), "aws-efa-v4": ("efa2", None),
}


def us(value):
    return f"{value:.3g} us"


def part(value):
    return f"{min(value, 1.0):.3g}"


def nvlink(file, p):
    speed, efficiency, switched = NVLINKS[file]
    k = p[f"speed.{speed}"] if speed else 1.0
    out = {"latency": us(p["message"] * k)}
    if efficiency:
        out["efficiency"] = part(p[f"efficiency.{efficiency}"])
    if switched:
        out["in_switch_base"] = us(p["switch.base"] * k)
    for name in ("LL", "LL128", "Simple"):
        at = f"protocols.{name}."
        for kind in ("ring", "tree"):
            out[f"{at}{kind}_base"] = us(p["base"] * k)
            out[f"{at}{kind}_step"] = us(p[f"step.{name}"] * k)
        out[f"{at}own_share"] = part(p["own.Simple" if name == "Simple" else "own.LL"])
        if name != "Simple":
            out[f"{at}bandwidth_fraction"] = part(p[f"fraction.{name}"])
            out[f"{at}until"] = us(UNTIL)
    out["protocols.LL.exchange_base"] = us(p["exchange.LL"] * k)
    out["exchange_peer"] = us(EXCHANGE_PEER * k)
    return out


def network(file, p):
    speed, efficiency = NETWORKS[file]
    k = p[f"net.speed.{speed}"] if speed else 1.0
    steps = {"LL": p["net.step.LL"], "LL128": p["net.step.LL128"], "Simple": p["net.step.LL128"] * p["net.over.Simple"]}
    out = {"latency": us(p["net.base"] + p["net.step.LL"] * k)}
    if efficiency:
        out["efficiency"] = part(p[f"net.efficiency.{efficiency}"])
    for name in ("LL", "LL128", "Simple"):
        at = f"protocols.{name}."
        for kind in ("ring", "tree"):
            out[f"{at}{kind}_base"] = us(p["net.base"])
            out[f"{at}{kind}_step"] = us(steps[name] * k)
        if name != "Simple":
            out[f"{at}bandwidth_fraction"] = part(p[f"net.fraction.{name}"])
            out[f"{at}until"] = us(UNTIL)
    out["protocols.LL.exchange_base"] = us(0.0)
    return out


def others(p):
    simple = "protocols.Simple."
    return {
        "gcp-tcpx": {"efficiency": part(p["tcpx.efficiency"]), "latency": us(p["tcpx.step"] + 8.4),
                     simple + "ring_step": us(p["tcpx.step"]), simple + "tree_step": us(p["tcpx.step"])},
        "ethernet": {"efficiency": part(p["host.efficiency"]), "latency": us(p["host.message"]),
                     simple + "ring_step": us(p["host.step"]), simple + "tree_step": us(p["host.step"])},
    }


def links(p):
    """{file: {path: text}}"""
    made = {file: nvlink(file, p) for file in NVLINKS}
    made.update({file: network(file, p) for file in NETWORKS})
    made.update(others(p))
    return made


class Parameter:
    def __init__(self, name):
        self.name, self.log, self.prior = name, True, SPREADS.get(name)
        self.low, self.start, self.high = PARAMETERS[name]


class Row:
    def __init__(self, cells):
        self.cells, self.family, self.weight = cells, cells["family"], 1.0
        self.group = f"{self.family}/{cells['config_group']}"
        self.large = float(cells["size_bytes"] or 0) >= LARGE


class Program:
    """What `calibrate.fit` needs of a program: predictions by parameters."""

    def __init__(self, program, data, table):
        self.program, self.data, self.table = pathlib.Path(program).resolve(), pathlib.Path(data).resolve(), table
        self.rows = [Row(cells) for cells in tables.lines(table)]
        self.parameters = [Parameter(name) for name in PARAMETERS]
        self.seen, self.places = {}, {}
        self.texts = {file.stem: file.read_text(encoding="utf-8") for file in (self.data / "links").glob("*.yaml")}
        self.measured = self.run(self.data, "measured")
        self.before = self.run(self.data, "predicted")

    def catalogue(self, values):
        """{file: text} of the links that the parameters make."""
        p = dict(zip(PARAMETERS, values))
        made = {}
        for file, changes in links(p).items():
            lines = self.texts[file].split("\n")
            for path, value in changes.items():
                at = self.line_of(file, lines, path)
                lines[at] = f"{lines[at][:lines[at].index(':')]}: {value}"
            made[file] = "\n".join(lines)
        return made

    def line_of(self, file, lines, path):
        if (file, path) not in self.places:
            self.places[file, path] = figures.locate(lines, path)
        return self.places[file, path]

    def run(self, data, column):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.csv"
            subprocess.run([self.program, "validate", "--data", self.table, "--out", out], check=True,
                           env=dict(os.environ, ORRERY_DATA=str(data)), stdout=subprocess.DEVNULL)
            with open(out, newline="", encoding="utf-8") as stream:
                return [float(line[column]) if line[column] else None for line in csv.DictReader(stream)]

    def predicted(self, values):
        key = tuple(values)
        if key not in self.seen:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                for entry in self.data.iterdir():
                    if entry.name != "links":
                        (folder / entry.name).symlink_to(entry)
                (folder / "links").mkdir()
                for file, text in {**self.texts, **self.catalogue(values)}.items():
                    (folder / "links" / f"{file}.yaml").write_text(text, encoding="utf-8")
                self.seen[key] = self.run(folder, "predicted")
        return self.seen[key]


def fold_of(row):
    return int(hashlib.sha256(row.group.encode()).hexdigest(), 16) % FOLDS


def median(values):
    values = sorted(values)
    n = len(values)
    return float("nan") if not n else (values[(n - 1) // 2] + values[n // 2]) / 2


def errors(program, predicted):
    """[rows]: |error|; a row without a prediction counts as 100 %."""
    return [abs(p / m - 1) if p else 1.0 for p, m in zip(predicted, program.measured)]


def report(program, columns):
    """Median errors by family and size, and by operation and size; `columns`: name -> predictions."""
    groups = collections.OrderedDict()
    for i, row in enumerate(program.rows):
        size = ">= 1 MiB" if row.large else "below"
        for name in ("all", row.family, row.cells["collective"]):
            groups.setdefault((name, size), []).append(i)
    print(f"{'':28}{'rows':>6}" + "".join(f"{name:>12}" for name in columns) + "   median |error|")
    for (name, size), members in groups.items():
        cells = [f"{100 * median([column[i] for i in members]):10.1f} %" for column in columns.values()]
        print(f"{name + ', ' + size:28}{len(members):6}" + "".join(cells))


def held_out(program, steps):
    """Predictions of each fold by a fit on the others, from the priors."""
    out = [None] * len(program.rows)
    solver = fit.Fit(program, workers=WORKERS)
    jacobian = solver.jacobian(solver.start, solver.residuals(solver.start))
    for fold in range(FOLDS):
        use = [i for i, row in enumerate(program.rows) if fold_of(row) != fold]
        taken = []
        there = solver.run(use, steps=steps, jacobian=jacobian, enough=ENOUGH, progress=lambda step, _: taken.append(step))
        if len(taken) == steps:
            print(f"fold {fold + 1} of {FOLDS} did not end in {steps} steps", file=sys.stderr)
        predicted = program.predicted(solver.values(there))
        for i, row in enumerate(program.rows):
            if fold_of(row) == fold:
                out[i] = predicted[i]
    return out


def write_residuals(path, program, inside, outside):
    """As `tools/calibrate --residuals` writes them."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "family", "config_group", "table", "measured", "in_sample", "held_out", "fold"])
        for i, row in enumerate(program.rows):
            writer.writerow([row.cells["id"], row.family, row.group, pathlib.Path(program.table).name,
                             program.measured[i], inside[i], outside[i] or "", fold_of(row)])


def cited(changes):
    """What the citations of a link class name: its protocols as a whole. `exchange_peer` is read off and has its own."""
    paths = {path.split(".")[0] for path in changes} - {"exchange_peer"}
    return sorted(paths)


def citation_of(program, columns):
    def both(column):
        return [f"{100 * median([e for e, row in zip(column, program.rows) if row.large == large]):.1f} %" for large in (False, True)]
    small, large = both(columns["in sample"])
    held = ""
    if "held out" in columns:
        below, above = both(columns["held out"])
        held = f"; held out {below.removesuffix(' %')} and {above} ({FOLDS} folds)"
    return (f"fitted: tools/calibrate/collectives.py, {len(program.rows)} rows of nccl-tests, 2026-11; median error "
            f"{small} below 1 MiB, {large} above{held}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--data", default=str(pathlib.Path(__file__).resolve().parents[2] / "data"))
    arguments.add_argument("--table", required=True)
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--steps", type=int, default=STEPS)
    arguments.add_argument("--no-folds", action="store_true")
    arguments.add_argument("--residuals")
    said = arguments.parse_args()
    program = Program(said.program, said.data, said.table)
    use = range(len(program.rows))
    solver = fit.Fit(program, workers=WORKERS)
    z = solver.run(use, steps=said.steps, enough=ENOUGH, progress=lambda step, value: print(f"step {step}: {value:.3f}", flush=True))
    values = solver.values(z)
    for parameter, value in zip(program.parameters, values):
        edge = " at its bound" if value in (parameter.low, parameter.high) else ""
        print(f"  {parameter.name:24}{value:10.4g}{edge}")
    count = len(values) + 1
    print(f"{count} parameters with the switch between protocols, {len(use)} rows: "
          f"{len(use) // MOST_PARAMETERS} allowed")
    inside = program.predicted(values)
    columns = {"before": errors(program, program.before), "in sample": errors(program, inside)}
    outside = [None] * len(program.rows)
    if not said.no_folds:
        outside = held_out(program, said.steps)
        columns["held out"] = errors(program, outside)
    report(program, columns)
    if said.residuals:
        write_residuals(said.residuals, program, inside, outside)
    if said.write:
        citation = citation_of(program, columns)
        for file, text in program.catalogue(values).items():
            for path in cited(links(dict(zip(PARAMETERS, values)))[file]):
                text = figures.with_source(text, path, citation)
            (program.data / "links" / f"{file}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
