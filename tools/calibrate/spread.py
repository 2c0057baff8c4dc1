"""Writes data/uncertainty.yaml: how far measured times lie from predicted ones, by kind of job.

  python3 tools/calibrate/spread.py --program build/release/orrery --tables DIR... [--write]

What is asked for is the interval of measured / predicted for a source (a publication, a campaign) that no figure was fitted
to. Its logarithm has two parts: the scatter of rows inside a source, and the spread of the medians of sources. Sources that
figures were fitted to tell the scatter only, where four others are known: their medians are near 1 because of the fit. A
network that was fitted is priced as another network with ports of the same rate instead: a user's network is not in a table.

A kind with fewer than four sources has center and spread of the wider kind, and a variance inside a source that is the mean of its
own sources' and of the wider kind's, which counts as four sources (shrinkage). The interval is
center +- width x 1.28 x sqrt(scatter^2 + between^2 (1 + 1 / sources)), where `width` is the least factor for which sources that are
left out, of the kind and of the wider kind, have 80 % of their rows inside; of a kind with few sources not less than that of the
wider kind, because one or two sources near the center do not show that others are.
"""
import argparse
import collections
import csv
import math
import pathlib
import random
import re
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import tables  # noqa: E402

JOBS = ("training.csv", "training_vtrain_single_node.csv", "lora.csv", "moe.csv", "dlrm_moe.csv", "inference.csv", "kernels.csv",
        "commands.csv")
COLLECTIVES = "collectives.csv"
# Their authors say that they are off by tens of percent, or the time is derived from other figures.
NOT_COUNTED = {"bigscience_v100", "llama3_405b", "memory_unverified"}
WIDER = {"dense": "training", "experts": "training", "adapters": "training", "recommenders": "training",
         "collectives-one-domain": "collectives", "collectives-many-domains": "collectives"}
KINDS = (*WIDER, "training", "inference", "kernels", "collectives", "parts", "any")
BASES = ("measured", "generation", "prior")
FEWEST_ROWS, FEWEST_SOURCES = 8, 4  # of a kind of its own
WANTED = 0.80
LEAST_WIDTH = 0.2
TRIALS, TAIL = 2000, 0.05  # of simulated coverages, and the part of them beyond either bound of a band
MOST_ROWS = 10  # of a source, as its weight in the coverage
MEDIAN_ROWS = 5  # of a source, as its weight in the spread between sources: a median of one row has the row's scatter
NORMAL_TENTH = 1.2816  # a tenth of a normal distribution lies beyond
# Networks by the rate of a port in GB/s.
ALIKE = {"25": ("InfiniBand HDR", "RoCE"), "50": ("EFA", "InfiniBand NDR", "RoCE")}

Ratio = collections.namedtuple("Ratio", "kind basis source log")


def fitted_families(data):
    """Families that figures of the catalogue were fitted to, as the catalogue's sources say."""
    families = set()
    for path in pathlib.Path(data).glob("*/*.yaml"):
        for text in re.findall(r'fitted: [^"]*? (?:rows|products) of ([a-z0-9_, ]+)', path.read_text(encoding="utf-8")):
            families.update(re.findall(r"[a-z0-9]+(?:_[a-z0-9]+)+", text))
    return families


def ratios_of(program, path, rows):
    """The ratios of the rows of one table that have a measurement, a prediction and a kind."""
    said = {line["id"]: line for line in tables.predictions(program, path)}
    for row in rows:
        line = said.get(row.cells.get("id", ""))
        if not line or row.family in NOT_COUNTED or not (line["predicted"] and line["measured"] and line["spread"]):
            continue
        kind, basis = line["spread"].rsplit(" ", 1)
        yield Ratio(kind, basis, row.family, math.log(float(line["measured"]) / float(line["predicted"])))


def as_other_networks(program, path):
    """The rows on networks of which there are others with the same rate, priced as each of these."""
    rows = tables.read([path])
    for rate, networks in ALIKE.items():
        for network in networks:
            swapped = [row for row in rows if row.cells.get("nic_bw_GBps_per_gpu") == rate and int(row.cells.get("nodes") or 1) > 1
                       and network.split()[0].lower() not in row.cells.get("network", "").lower()]
            if not swapped:
                continue
            with tempfile.TemporaryDirectory() as folder:
                other = pathlib.Path(folder) / path.name
                with open(other, "w", newline="", encoding="utf-8") as stream:
                    writer = csv.DictWriter(stream, list(swapped[0].cells), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows({**row.cells, "network": network} for row in swapped)
                yield from ratios_of(program, other, swapped)


def ratios(options):
    found = []
    for path in tables.files(options.tables, JOBS):
        found += ratios_of(options.program, path, tables.newest(tables.read([path])))
    for path in tables.files(options.tables, (COLLECTIVES,)):
        rows = tables.read([path])
        alone = [row for row in rows if row.cells.get("nic_bw_GBps_per_gpu") not in ALIKE]
        found += ratios_of(options.program, path, alone)
        found += as_other_networks(options.program, path)
    return found


def by_source(members):
    sources = collections.OrderedDict()
    for one in members:
        sources.setdefault(one.source, []).append(one.log)
    return sources


def variances(sources):
    """Variance of the logarithms inside each source that has several."""
    return [statistics.pvariance(logs) for logs in sources.values() if len(logs) > 1]


def without(sources, name):
    return {other: logs for other, logs in sources.items() if other != name}


class Parts:
    """Center, scatter inside a source and spread between sources, all of logarithms."""

    def __init__(self, sources, fitted):
        free = {name: logs for name, logs in sources.items() if name not in fitted}
        if len(free) < FEWEST_SOURCES:
            free = sources
        medians = [(statistics.median(logs), min(len(logs), MEDIAN_ROWS)) for logs in free.values()]
        weight = sum(of for _, of in medians)
        self.center = sum(of * median for median, of in medians) / weight
        # Of a normal distribution, the standard deviation. One far source weighs less than in a root mean square.
        deviation = math.sqrt(math.pi / 2) * sum(of * abs(median - self.center) for median, of in medians) / weight
        self.sources = weight ** 2 / sum(of ** 2 for _, of in medians)  # as many with equal weights
        self.between = deviation * math.sqrt(self.sources / (self.sources - 1)) if self.sources > 1 else 0.0
        inside = variances(sources)
        self.scatter = math.sqrt(statistics.mean(inside)) if inside else 0.0

    def shrunk(self, sources):
        """These parts, of a wider kind, with its scatter and that of a kind's own sources together."""
        inside = variances(sources)
        self.scatter = math.sqrt((sum(inside) + FEWEST_SOURCES * self.scatter ** 2) / (len(inside) + FEWEST_SOURCES))
        return self

    def bounds(self, width):
        between = self.between * math.sqrt(1 + 1 / self.sources)
        half = width * NORMAL_TENTH * math.hypot(self.scatter, between)
        return self.center - half, self.center + half


def coverage(left_out, width):
    """Part of the rows inside, of sources that were left out."""
    inside = weight = 0.0
    for logs, parts in left_out:
        low, high = parts.bounds(width)
        share = sum(low <= log <= high for log in logs) / len(logs)
        inside += min(len(logs), MOST_ROWS) * share
        weight += min(len(logs), MOST_ROWS)
    return inside / weight


def widened(left_out, width):
    """The least width, from `width` on, at which sources that are left out have enough of their rows inside."""
    while width < 4.0 and coverage(left_out, width) < WANTED:
        width += 0.02
    return width, coverage(left_out, width)


def interval(members, fitted, wider):
    """(parts, width, coverage) of a kind. `wider`: the members of a wider kind, if it has too few sources itself."""
    sources = by_source(members)
    if wider:
        every = by_source(wider)
        left_out = [(logs, Parts(without(every, name), fitted).shrunk(without(sources, name)))
                    for name, logs in sources.items()]
        return Parts(every, fitted).shrunk(sources), *widened(left_out, interval(wider, fitted, [])[1])
    left_out = []
    for name, logs in sources.items():
        others = without(sources, name)
        is_new = name not in fitted or len(set(sources) - fitted) < FEWEST_SOURCES
        if others and is_new:
            left_out.append((logs, Parts(others, fitted)))
    return Parts(sources, fitted), *widened(left_out, LEAST_WIDTH)


def coverage_band(sources, parts):
    """Coverages of sources of these sizes, between which nine of ten lie if the interval is right: both parts normal, and a
    fifth of all rows of all possible sources outside."""
    own = random.Random(1)
    between = parts.between * math.sqrt(1 + 1 / parts.sources)
    half = NORMAL_TENTH * math.hypot(parts.scatter, between)

    def one():
        inside = weight = 0.0
        for logs in sources.values():
            median, rows = own.gauss(0.0, between), len(logs)
            share = sum(abs(own.gauss(median, parts.scatter)) <= half for _ in logs) / rows
            inside += min(rows, MOST_ROWS) * share
            weight += min(rows, MOST_ROWS)
        return inside / weight

    drawn = sorted(one() for _ in range(TRIALS if sum(map(len, sources.values())) < 1000 else TRIALS // 20))
    return drawn[int(TAIL * len(drawn))], drawn[-1 - int(TAIL * len(drawn))]


def belongs(one, kind, basis):
    return kind in ("any", one.kind, WIDER.get(one.kind)) and basis in ("", one.basis)


def members_of(found, kind, basis):
    return [one for one in found if belongs(one, kind, basis)]


def has_sources(members):
    return len({one.source for one in members}) >= FEWEST_SOURCES


def lines_of(name, members, fitted, wider):
    parts, width, held = interval(members, fitted, wider)
    low, high = map(math.exp, parts.bounds(width))
    sources = len(by_source(members))
    least, most = coverage_band(by_source(members), parts)
    print(f"{name:34} {len(members):5} rows {sources:3} sources  {low:.3f} to {high:.3f}, scatter {parts.scatter:.3f}, between "
          f"{parts.between:.3f}, width {width:.2f}: left out {100 * held:.0f} % ({100 * least:.0f} to {100 * most:.0f} % if right)")
    return [f"  - kind: {name}", f"    p10: {low:.3f}", f"    p90: {high:.3f}", f"    rows: {len(members)}",
            f"    sources: {sources}", f"    scatter: {parts.scatter:.3f}", f"    between: {parts.between:.3f}",
            f"    coverage: {held:.2f}"]


def serving_lines(text):
    """The lines of serving kinds in a table, which serving_spread.py writes."""
    blocks = re.findall(r"(?m)^  - kind: serving .*\n(?:    .*\n)*", text)
    return "".join(blocks).splitlines()


def with_serving(text, lines):
    """The table with other serving kinds, which stand behind the others."""
    rest = re.sub(r"(?m)^  - kind: serving .*\n(?:    .*\n)*", "", text)
    head, _, tail = rest.partition("source: ")
    return head + "".join(line + "\n" for line in lines) + "source: " + tail


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--data", default=str(ROOT / "data"))
    parser.add_argument("--tables", nargs="+", default=[str(ROOT / "data/measurements")])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found, fitted, lines = ratios(options), fitted_families(options.data), []
    for kind in KINDS:
        for basis in ("", *BASES):
            members = members_of(found, kind, basis)
            if len(members) < FEWEST_ROWS:
                print(f"{kind} {basis}: {len(members)} rows are too few")
                continue
            wider = []
            if not has_sources(members):
                up = WIDER.get(kind, kind)
                candidates = [members_of(found, kind, ""), members_of(found, up, basis), members_of(found, up, "")]
                wider = next((one for one in candidates if has_sources(one)), [])
            if not wider and len({one.source for one in members}) < 2:
                print(f"{kind} {basis}: one source and no wider kind")
                continue
            lines += lines_of(f"{kind} {basis}".strip(), members, fitted, wider)
    if options.write:
        text = "\n".join(["# Intervals of measured / predicted; written by tools/calibrate/spread.py.", "kinds:", *lines,
                          'source: "published rows of docs/accuracy.md; each source left out once"']) + "\n"
        path = pathlib.Path(options.data) / "uncertainty.yaml"
        path.write_text(with_serving(text, serving_lines(path.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
