#!/usr/bin/env python3
"""Published results of ASTRA-sim, and the inputs that gave them, rebuilt from a compact description.

  tools/astra_sim_cases.py check [--program build/release/orrery]   simulates every case and compares the cycles of each rank
  tools/astra_sim_cases.py write FOLDER                             writes the inputs of every case, for any simulator
  tools/astra_sim_cases.py collect RESULTS.csv INPUTS               makes the description from original inputs

The description is data/references/astra-sim: `cases.csv` (a case per line: network, system, memory, groups, workload,
flags, and what ASTRA-sim printed) and `graphs.csv` (execution graphs). Words:

  network    dimensions from the innermost out, with " / " between: topology, NPUs, GB/s, ns
  system     algorithm of each dimension, then key=value for what differs from BASE
  workload   a collective and its bytes, or the name of a graph
  graph      per range of ranks a list of nodes with ";" between: "comp 10", "4x comp 10 after -1" (four nodes, each after
             the one before), "send +1 4096 tag 3" (to the next rank), "all_reduce 1048576 group 2 dims 10"
  cycles     per rank; "64440x8" is eight ranks with 64440. `exposed` is blank where it equals `finish`
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import trace_fixtures as chakra  # noqa: E402

REFERENCES = ROOT / "data/references/astra-sim"
COLUMNS = ["case", "backend", "network", "system", "memory", "groups", "workload", "flags", "finish", "exposed"]
OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
COLLECTIVES = {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}
BASE = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
        "collective-optimization": "localBWAware", "local-mem-bw": 1600}
SHORT = {"policy": "scheduling-policy", "delay": "endpoint-delay", "active": "active-chunks-per-dimension",
         "splits": "preferred-dataset-splits", "optimization": "collective-optimization", "mem": "local-mem-bw",
         "custom": "all-reduce-implementation-custom"}
LONG = {long: short for short, long in SHORT.items()}
MEMORY = {"latency": "remote-mem-latency", "bandwidth": "remote-mem-bw", "nodes": "num-nodes", "npus": "num-npus-per-node"}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


# ---- from the description to inputs --------------------------------------------------------------------------------


def number(text):
    return int(text) if text.lstrip("-").isdigit() else float(text)


def value(text):
    return number(text) if text.replace(".", "").replace("-", "").replace("e", "").isdigit() else text


def dimensions(network):
    return [part.split() for part in network.split(" / ")]


def network_text(network):
    keys = ("topology", "npus_count", "bandwidth", "latency")
    columns = zip(*dimensions(network))
    return "".join(f"{key}: [ {', '.join(column)} ]\n" for key, column in zip(keys, columns))


def ranks_of_network(network):
    ranks = 1
    for _, count, _, _ in dimensions(network):
        ranks *= int(count)
    return ranks


def system_of(text, place_of_graph):
    """The system configuration; graphs of custom algorithms become paths."""
    words = text.split()
    system = dict(BASE)
    for word in words:
        key, equals, content = word.partition("=")
        if word.startswith("-"):
            system.pop(SHORT.get(word[1:], word[1:]))
        elif not equals:
            system.update({f"{operation}-implementation": word.split(",") for operation in OPERATIONS})
        elif key == "custom":
            system[SHORT[key]] = [place_of_graph(content)]
        else:
            system[SHORT.get(key, key)] = value(content)
    return system


def memory_of(text):
    words = text.split() or ["NO_MEMORY_EXPANSION"]
    pairs = dict(word.split("=") for word in words[1:])
    return {"memory-type": words[0], **{MEMORY[key]: number(content) for key, content in pairs.items()}}


def ranks_of(text):
    """Ranks of "0-3+8"."""
    found = []
    for part in text.split("+"):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def groups_of(text):
    parts = (part.split(":") for part in text.split())
    return {name: ranks_of(ranks) for name, ranks in parts}


class Graph:
    """Nodes of one rank as Chakra writes them."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks, self.nodes = rank, ranks, []

    def add(self, text):
        times, behind = 1, text
        first, _, rest = text.partition(" ")
        if first.endswith("x") and first[:-1].isdigit():
            times, behind = int(first[:-1]), rest
        for _ in range(times):
            self.add_one(behind.split())

    def add_one(self, words):
        kind = words[0]
        peer = kind in ("send", "recv")
        keys = dict(zip(words[3 if peer else 2::2], words[4 if peer else 3::2]))
        size = number(words[2 if peer else 1])
        attributes = []
        if keys.get("cpu") != "none":
            attributes.append(("is_cpu_op", chakra.BOOL, int(keys.get("cpu", 0))))
        nth = len(self.nodes) + 1
        before = [nth + int(one) for one in keys.get("after", "").split(",") if one]
        duration = int(keys.get("dur", 0))
        if kind == "comp":
            number_of, duration = chakra.COMP, size
            sizes = (("ops", "num_ops"), ("bytes", "tensor_size"))
            attributes += [(name, chakra.INT64, int(keys[key])) for key, name in sizes if key in keys]
        elif kind in ("load", "store"):
            number_of = chakra.LOAD if kind == "load" else 3
            attributes.append(("tensor_size", chakra.INT64, size))
        elif peer:
            number_of = chakra.SEND if kind == "send" else chakra.RECV
            other = (self.rank + int(words[1])) % self.ranks
            ends = (self.rank, other) if kind == "send" else (other, self.rank)
            attributes += [("comm_src", chakra.INT64, ends[0]), ("comm_dst", chakra.INT64, ends[1]),
                           ("comm_size", chakra.INT64, size), ("comm_tag", chakra.INT64, int(keys.get("tag", 0)))]
        else:
            number_of = chakra.COLL
            attributes += [("comm_type", chakra.INT64, COLLECTIVES[kind]), ("comm_size", chakra.INT64, size)]
            if "group" in keys:
                attributes.append(("pg_name", chakra.STRING, keys["group"]))
            if "dims" in keys:
                attributes.append(("involved_dim", chakra.BOOL_LIST, keys["dims"]))
        self.nodes.append(chakra.node(nth, number_of, [one for one in before if one > 0], duration=duration, attributes=attributes))


def graph_files(graph, prefix, ranks):
    """Writes PREFIX.<rank>.et. `graph`: [(range of ranks, nodes)]."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    nodes = {rank: text for span, text in graph for rank in (range(ranks) if span == "*" else ranks_of(span))}
    for rank, text in nodes.items():
        one = Graph(rank, ranks)
        for node in text.split("; "):
            one.add(node)
        pathlib.Path(f"{prefix}.{rank}.et").write_bytes(chakra.trace(*one.nodes))


class Inputs:
    """Files of cases in one folder; each graph is written once."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.graphs = collections.defaultdict(list)
        for row in rows_of(REFERENCES / "graphs.csv"):
            self.graphs[row["graph"]].append((row["ranks"], row["nodes"]))
        self.written = {}

    def prefix(self, workload, ranks):
        key = (workload, ranks)
        if key not in self.written:
            graph = self.graphs.get(workload) or [("*", workload)]
            prefix = self.folder / "workloads" / f"{workload.replace(' ', '_')}_{ranks}" / "w"
            graph_files(graph, prefix, ranks)
            self.written[key] = prefix
        return self.written[key]

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return path

    def arguments(self, row):
        """Flags of ASTRA-sim for one case, whose files are written."""
        ranks = ranks_of_network(row["network"])
        name = f"cases/{row['case']}"
        system = system_of(row["system"], lambda graph: str(self.prefix(graph, ranks)))
        flags = [f"--workload-configuration={self.prefix(row['workload'], ranks)}",
                 f"--system-configuration={self.write(name + '/system.json', system)}",
                 f"--network-configuration={self.write(name + '/network.yml', network_text(row['network']))}",
                 f"--remote-memory-configuration={self.write(name + '/memory.json', memory_of(row['memory']))}"]
        if row["groups"]:
            flags.append(f"--comm-group-configuration={self.write(name + '/groups.json', groups_of(row['groups']))}")
        return flags + row["flags"].split()


# ---- comparing -----------------------------------------------------------------------------------------------------


def cycles(text):
    """Per rank: "64744x4 100" is four ranks and one."""
    found = []
    for word in text.split():
        count, _, times = word.partition("x")
        found += [int(count)] * int(times or 1)
    return found


def simulated(program, row, flags, fold):
    """([finish], [exposed]) of every rank, and how many ranks were simulated."""
    backend = f"congestion-{row['backend']}"
    command = [program, "simulate", *flags, "--backend", backend, "--fold", fold, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    finish, exposed = {}, {}
    result = json.loads(done.stdout)
    for one in result["classes"]:
        for first, last in one["ranks"]:
            for rank in range(first, last + 1):
                finish[rank], exposed[rank] = one["finish_ns"], one["exposed_comm_ns"]
    ranks = [finish[rank] for rank in sorted(finish)], [exposed[rank] for rank in sorted(exposed)]
    return *ranks, result["stats"]["simulated_ranks"]


def difference(program, row, flags):
    """What differs from ASTRA-sim's cycles (empty: nothing), with one rank for all where possible and without; and
    whether one rank was simulated for all."""
    try:
        found = simulated(program, row, flags, "auto")
        is_folded = found[2] < len(found[0])
        wrong = difference_of(row, found)
        if is_folded and not wrong:
            wrong = difference_of(row, simulated(program, row, flags, "off"))
    except RuntimeError as error:
        return str(error), False
    return wrong, is_folded


def difference_of(row, found):
    finish = cycles(row["finish"])
    exposed = cycles(row["exposed"] or row["finish"])
    if len(found[0]) != len(finish):
        return f"{len(found[0])} ranks instead of {len(finish)}"
    for rank, expected in enumerate(zip(finish, exposed)):
        got = (found[0][rank], found[1][rank])
        if got != expected:
            return f"rank {rank}: finish, exposed {got} instead of {expected}"
    return ""


def check(program):
    """Number of cases that differ."""
    rows = rows_of(REFERENCES / "cases.csv")
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(folder)
        flags = [inputs.arguments(row) for row in rows]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda pair: difference(program, *pair), zip(rows, flags)))
    for row, (wrong, _) in zip(rows, found):
        if wrong:
            print(f"case {row['case']} ({row['backend']}, {row['network']}, {row['system']}, {row['workload']}): {wrong}")
    wrong = sum(bool(text) for text, _ in found)
    folded = sum(is_folded for _, is_folded in found)
    print(f"{len(rows) - wrong} of {len(rows)} cases have ASTRA-sim's cycles on every rank; in {folded}, also with one rank for all")
    return wrong


def write(folder):
    inputs = Inputs(folder)
    lines = [f"{row['case']} {row['backend']} {' '.join(inputs.arguments(row))}" for row in rows_of(REFERENCES / "cases.csv")]
    inputs.write("commands.txt", "\n".join(lines) + "\n")
    print(f"{len(lines)} cases in {folder}; commands.txt has the flags of each")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    checked = commands.add_parser("check")
    checked.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    commands.add_parser("write").add_argument("folder")
    collected = commands.add_parser("collect")
    collected.add_argument("results", type=pathlib.Path)
    collected.add_argument("inputs", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "check":
        return 1 if check(options.program) else 0
    if options.command == "write":
        return write(options.folder)
    import astra_sim_collect  # reads original inputs; only needed to make the description anew
    return astra_sim_collect.collect(options.results, options.inputs)


if __name__ == "__main__":
    sys.exit(main())
