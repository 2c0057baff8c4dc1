"""From original inputs of ASTRA-sim to the description in data/references/astra-sim (see astra_sim_cases.py).

Left out: graphs of the symbolic tensor graph generator (folders stg_*), which are another project's.
"""
import csv
import json
import pathlib
import re
import struct

import astra_sim_cases as cases

KINDS = {2: "load", 3: "store", 4: "comp", 5: "send", 6: "recv", 7: "coll"}
NO_EFFECT = {"boost-mode", "local-mem-trace-filename"}
NAMES = {content: name for name, content in cases.COLLECTIVES.items()}


# ---- Chakra's wire format ------------------------------------------------------------------------------------------


def varint(data, at):
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return result, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            content, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                size, at = varint(data, at)
            content, at = data[at:at + size], at + size
        yield key >> 3, wire, content


def numbers(content):
    if isinstance(content, int):
        return [content]
    found, at = [], 0
    while at < len(content):
        one, at = varint(content, at)
        found.append(one)
    return found


def attribute(data):
    name = content = None
    for field, wire, one in fields(data):
        if field == 1:
            name = one.decode()
        elif field == 3:
            content = struct.unpack("<d", one)[0] if wire == 1 else one
        elif field == 28:  # a list of booleans
            content = "".join(str(bit) for _, _, bits in fields(one) for bit in numbers(bits))
        elif field > 2:
            content = one.decode() if isinstance(one, bytes) else one
    return name, content


def nodes_of(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        found.append(data[at:at + size])
        at += size
    nodes = []
    for raw in found[1:]:
        node = {"id": 0, "kind": 0, "duration": 0, "after": [], "attributes": {}}
        for field, _, content in fields(raw):
            if field == 1:
                node["id"] = content
            elif field == 3:
                node["kind"] = KINDS[content]
            elif field in (4, 5):
                node["after"] += numbers(content)
            elif field == 7:
                node["duration"] = content
            elif field == 10:
                name, one = attribute(content)
                node["attributes"][name] = one
        nodes.append(node)
    return nodes


# ---- graphs --------------------------------------------------------------------------------------------------------


def words_of(node, nth, position, rank, ranks):
    has = node["attributes"]
    kind = node["kind"]
    if kind == "comp":
        words = ["comp", node["duration"]]
        words += [word for key, name in (("ops", "num_ops"), ("bytes", "tensor_size")) if has.get(name) for word in (key, has[name])]
    elif kind in ("load", "store"):
        words = [kind, has["tensor_size"]]
    elif kind in ("send", "recv"):
        peer = (has["comm_dst" if kind == "send" else "comm_src"] - rank) % ranks
        words = [kind, f"+{peer}", has["comm_size"]] + (["tag", has["comm_tag"]] if has["comm_tag"] else [])
    else:
        words = [NAMES[has.get("comm_type", 0)], has["comm_size"]]
        words += ["dur", node["duration"]] if node["duration"] else []
        words += ["group", has["pg_name"]] if has.get("pg_name") else []
        words += ["dims", has["involved_dim"]] if has.get("involved_dim") else []
    if "is_cpu_op" not in has:
        words += ["cpu", "none"]
    elif has["is_cpu_op"]:
        words += ["cpu", 1]
    if node["after"]:
        words += ["after", ",".join(str(position[one] - nth) for one in node["after"])]
    return " ".join(map(str, words))


def chained(text):
    """The text of a node relative to the previous one: equal for all nodes of a chain."""
    return text if " after " in text else f"{text} after -1"


def graph_text(path, rank, ranks):
    nodes = nodes_of(path)
    position = {node["id"]: nth for nth, node in enumerate(nodes)}
    runs = []
    for nth, node in enumerate(nodes):
        text = words_of(node, nth, position, rank, ranks)
        if runs and (runs[-1][1] == text or (len(runs) == 1 and runs[0][0] == 1 and chained(runs[0][1]) == text)):
            runs[-1] = [runs[-1][0] + 1, text]  # a chain: its first node's "after" has nobody
        else:
            runs.append([1, text])
    return "; ".join(text if times == 1 else f"{times}x {text}" for times, text in runs)


def span(ranks):
    parts, first = [], None
    for nth, rank in enumerate(ranks):
        first = rank if first is None else first
        if nth + 1 == len(ranks) or ranks[nth + 1] != rank + 1:
            parts.append(f"{first}-{rank}" if rank > first else str(rank))
            first = None
    return "+".join(parts)


def classes(prefix, ranks):
    found = {}
    for rank in range(ranks):
        found.setdefault(graph_text(pathlib.Path(f"{prefix}.{rank}.et"), rank, ranks), []).append(rank)
    return [("*" if len(same) == ranks else span(same), text) for text, same in found.items()]


# ---- configurations ------------------------------------------------------------------------------------------------


def short(content):
    return repr(int(content)) if float(content) == int(content) else repr(content)


def network_words(path, ranks):
    """A network file that was overwritten after its results were made has the wrong last dimension: it is set to what
    makes up the ranks that printed."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(r"(\w+):\s*\[(.*?)\]", line.split("#")[0].strip())
        if match:
            found[match[1]] = [one.strip() for one in match[2].split(",")]
    counts = [int(one) for one in found["npus_count"]]
    inner = 1
    for count in counts[:-1]:
        inner *= count
    counts[-1] = ranks // inner
    lines = zip(found["topology"], counts, found["bandwidth"], found["latency"])
    return " / ".join(f"{kind} {count} {short(float(rate))} {short(float(latency))}" for kind, count, rate, latency in lines)


def system_words(path, graph_name):
    system = {key: one for key, one in json.loads(path.read_text()).items() if key not in NO_EFFECT}
    if not system.get("roofline-enabled"):
        for key in ("roofline-enabled", "peak-perf"):
            system.pop(key, None)
    words = []
    algorithms = [system.pop(f"{operation}-implementation", None) for operation in cases.OPERATIONS]
    if any(algorithms):
        if any(one != algorithms[0] for one in algorithms):
            raise ValueError(f"{path}: algorithms differ by operation")
        words.append(",".join(algorithms[0]))
    custom = system.pop("all-reduce-implementation-custom", None)
    if custom:
        words.append(f"custom={graph_name(custom[0])}")
    words += [f"-{cases.LONG[key]}" for key in cases.BASE if key not in system]
    words += [f"{cases.LONG.get(key, key)}={one}" for key, one in system.items() if cases.BASE.get(key) != one]
    return " ".join(words)


def memory_words(path):
    memory = json.loads(path.read_text())
    if memory["memory-type"] == "NO_MEMORY_EXPANSION":
        return ""
    return " ".join([memory["memory-type"], *(f"{key}={memory[long]}" for key, long in cases.MEMORY.items() if long in memory)])


def group_words(path):
    return " ".join(f"{name}:{span(ranks)}" for name, ranks in json.loads(path.read_text()).items())


def collect(results, inputs):
    graphs, lines, left_out = {}, [], 0

    def graph_name(prefix, ranks):
        found = classes(inputs / prefix, ranks)
        text = found[0][1]
        if found[0][0] == "*" and ";" not in text and re.fullmatch(r"[a-z_]+ \d+", text):
            return text
        key = tuple(found)
        return graphs.setdefault(key, f"g{len(graphs) + 1}")

    for row in cases.rows_of(results):
        if "/stg_" in row["workload"]:
            left_out += 1
            continue
        ranks = int(row["npus"])
        finish, exposed = row["finish_cycles_per_rank"], row["exposed_comm_cycles_per_rank"]
        lines.append([len(lines) + 1, row["backend"], network_words(inputs / row["network"], ranks),
                      system_words(inputs / row["system"], lambda prefix, n=ranks: graph_name(prefix, n)),
                      memory_words(inputs / row["memory"]), group_words(inputs / row["comm_group"]) if row["comm_group"] else "",
                      graph_name(row["workload"], ranks), row["extra_args"], finish, "" if exposed == finish else exposed])
    cases.REFERENCES.mkdir(parents=True, exist_ok=True)
    with open(cases.REFERENCES / "cases.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([cases.COLUMNS, *lines])
    with open(cases.REFERENCES / "graphs.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["graph", "ranks", "nodes"])
        writer.writerows([name, ranks, text] for key, name in graphs.items() for ranks, text in key)
    print(f"{len(lines)} cases, {len(graphs)} graphs; left out: {left_out}")
    return 0
