#!/usr/bin/env python3
"""Writes the sound and broken trace files of golden tests and the guide; uses the standard library only.

Writes the files of each case of tests/golden that is named here. Run it after a change and commit the output: the files are
small, and tests must not depend on the writer that they test.
"""
import argparse
import gzip
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMP, SEND, RECV, COLL, LOAD = 4, 5, 6, 7, 2
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL = 0, 2, 6
DOUBLE, INT32, INT64, UINT64, UINT64_LIST, BOOL, BOOL_LIST, STRING, BYTES = 3, 7, 9, 13, 14, 27, 28, 29, 31


def varint(number):
    out = bytearray()
    while True:
        low = number & 0x7F
        number >>= 7
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def integer(field, number):
    return varint(field << 3) + varint(number)


def chunk(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field, content):
    return chunk(field, content.encode())


def value(kind, content):
    if kind == DOUBLE:
        return varint(kind << 3 | 1) + content
    if kind in (UINT64_LIST, BOOL_LIST):
        return chunk(kind, chunk(1, b"".join(varint(int(one)) for one in content)))
    if isinstance(content, (str, bytes)):
        return chunk(kind, content.encode() if isinstance(content, str) else content)
    return integer(kind, int(content))


def attribute(field, name, kind, content, doc=""):
    return chunk(field, text(1, name) + (text(2, doc) if doc else b"") + value(kind, content))


def node(number, kind=COMP, data=(), ctrl=(), name=None, start=0, duration=0, attributes=(), more=b""):
    out = integer(1, number) + text(2, name or f"node{number}") + (integer(3, kind) if kind else b"")
    for field, parents in ((4, ctrl), (5, data)):
        if parents:
            out += chunk(field, b"".join(varint(parent) for parent in parents))
    out += (integer(6, start) if start else b"") + (integer(7, duration) if duration else b"")
    return out + b"".join(attribute(10, *one) for one in attributes) + more


def collective(number, kind=ALL_REDUCE, size=4096, group=None, data=(), size_kind=INT64, duration=0, name=None):
    attributes = [("comm_type", INT64, kind), ("comm_size", size_kind, size)]
    if group is not None:
        attributes.append(("pg_name", STRING, group))
    return node(number, COLL, data, name=name, duration=duration, attributes=attributes)


def send(number, to, tag, size=1024, data=()):
    return node(number, SEND, data, attributes=[("comm_dst", INT32, to), ("comm_tag", INT32, tag), ("comm_size", INT64, size)])


def receive(number, sender, tag, size=1024, data=()):
    return node(number, RECV, data,
                attributes=[("comm_src", INT32, sender), ("comm_tag", INT32, tag), ("comm_size", INT64, size)])


def about(version="0.0.4", groups=()):
    return text(1, version) + b"".join(attribute(2, f"process_group/{name}", UINT64_LIST, ranks) for name, ranks in groups)


def trace(*nodes, first=None):
    return b"".join(varint(len(one)) + one for one in (about() if first is None else first, *nodes))


def packed(content):
    return gzip.compress(content, mtime=0)


def layers():
    """A small step: two layers forward and back, gradients reduced, one message on."""
    flops = [("num_ops", INT64, 1 << 30), ("tensor_size", UINT64, 1 << 20), ("op_schema", STRING, "aten::mm(Tensor, Tensor)")]
    shapes = chunk(8, text(1, "[[7]]") + text(2, "[[128, 4096]]") + text(3, "['Tensor(float)']"))
    return trace(
        node(1, name="layer.0.forward", start=100, duration=20, attributes=[("is_cpu_op", BOOL, 0), *flops], more=shapes),
        node(2, name="layer.1.forward", data=[1], start=120, duration=30, attributes=flops),
        node(3, name="layer.1.backward", data=[2], start=150, duration=60, attributes=flops),
        collective(4, size=1 << 20, group="dp", data=[3], duration=25, name="reduce.layer.1"),
        node(5, name="layer.0.backward", data=[3], ctrl=[1], start=210, duration=40, attributes=flops),
        collective(6, size=1 << 20, group="dp", data=[5, 4], duration=25, name="reduce.layer.0"),
        node(7, LOAD, [6], name="optimizer.state", duration=5, attributes=[("tensor_size", UINT64, 1 << 22)]),
        first=about(groups=[("dp", [0, 1])]) + attribute(2, "input_file", STRING, "/home/somebody/secret-model.json"))


def training_step(rank, broken=False):
    """Four layers forward and back on one of two ranks: gradients are reduced as they come, a message goes around."""
    nodes, number = [], 0

    def add(name, kind=COMP, data=(), duration=0, attributes=(), start=0):
        nonlocal number
        number += 1
        nodes.append(node(number, kind, data, name=name, start=start, duration=duration, attributes=attributes))
        return number

    work = [("is_cpu_op", BOOL, 0), ("num_ops", INT64, 1 << 33), ("tensor_size", INT64, 1 << 24)]
    last, clock, reduced = 0, 1000, []
    for layer in range(4):
        last = add(f"layer.{layer}.forward", data=[last] if last else [], duration=120, attributes=work, start=clock)
        clock += 120
    for layer in reversed(range(4)):
        last = add(f"layer.{layer}.backward", data=[last], duration=240, attributes=work, start=clock)
        clock += 240
        size = 1 << 21 if broken and layer == 2 else 1 << 22
        reduced.append(add(f"layer.{layer}.reduce", COLL, [last], 180, [("comm_type", INT64, ALL_REDUCE), ("comm_size", INT64, size),
                                                                      ("pg_name", STRING, "dp")]))
    peer = [("comm_tag", INT32, 7), ("comm_size", INT64, 4096)]
    sent = add("loss.send", SEND, [last], attributes=[("comm_dst", INT32, 1 - rank), *peer])
    got = add("loss.receive", RECV, [last], attributes=[("comm_src", INT32, 1 - rank), *peer])
    add("optimizer", data=[*reduced, sent, got, *([99] if broken else [])], duration=90, attributes=work)
    return trace(*nodes, first=about(groups=[("dp", [0, 1])]))


def every_value():
    """One attribute of each kind that JSON cannot represent directly."""
    return trace(
        node(1, name="a \"quoted\" \\ name\n\u00e9", attributes=[
            ("largest", UINT64, (1 << 64) - 1, "a comment"), ("smallest", INT64, 1 << 63),
            ("nan", DOUBLE, b"\0\0\0\0\0\0\xf8\x7f"), ("infinite", DOUBLE, b"\0\0\0\0\0\0\xf0\xff"),
            ("tenth", DOUBLE, b"\x9a\x99\x99\x99\x99\x99\xb9\x3f"), ("bytes", BYTES, b"\0\xff\x80"),
            ("flags", BOOL_LIST, [True, False])], more=integer(11, 7)),
        integer(1, 2) + chunk(2, b"\xff\xfe") + integer(3, 42))


THREE = trace(node(1), node(2, data=[1]), node(3, data=[2]))
NOISE = bytes((i * i * 131 + i * 17 + 77) & 0xFF for i in range(64))

CASES = {
    "trace_bad_truncated": {"t.et": THREE[:-5]},
    "trace_bad_empty": {"empty.et": b"", "one_byte.et": b"\x05", "zero.et": b"\0"},
    "trace_bad_random": {"t.et": NOISE},
    "trace_bad_flipped": {"t.et": THREE[:24] + bytes([THREE[24] ^ 0xFF]) + THREE[25:]},
    "trace_bad_length": {"t.et": THREE + b"\xff\xff\xff\xff\x0f" + node(4)},
    "trace_bad_gzip": {"t.et.gz": packed(layers())[:150]},
    "trace_gzip": {"t.et.gz": packed(THREE)},
    "trace_cycle": {"cycle.et": trace(node(1), node(2, data=[1, 4]), node(3, data=[2]), node(4, ctrl=[3])),
                    "self.et": trace(node(1), node(2, data=[2, 1]))},
    "trace_missing_parent": {"t.et": trace(node(1), node(2, data=[1, 9]), node(3, ctrl=[9, 8]))},
    "trace_duplicate_dependency": {"t.et": trace(node(1), node(2, data=[1, 1]))},
    "trace_duplicate_id": {"t.et": trace(node(1), node(2, data=[1]), node(1, duration=5))},
    "trace_default_node": {"t.et": trace(node(1), b"", node(3, data=[1]))},
    "trace_unknown": {"t.et": trace(node(1, more=integer(99, 5)), node(2, 42, [1]), first=about("9.9.9"))},
    "trace_uint64_size": {"t.et": trace(collective(1, size_kind=UINT64))},
    "trace_attributes": {"t.et": trace(node(1, COLL), node(2, SEND), node(3, LOAD), collective(4, kind=77),
                                       node(5, COLL, attributes=[("comm_type", STRING, "sum"), ("comm_size", INT64, (1 << 64) - 1)]))},
    "trace_job_collectives": {
        "w.0.et": trace(collective(1), collective(4, ALL_TO_ALL, 10), collective(2, ALL_GATHER, 64),
                        collective(3, size=8, group="tp")),
        "w.1.et": trace(collective(1), collective(4, ALL_TO_ALL, 20), collective(2, ALL_GATHER, 32),
                        collective(3, ALL_GATHER, 8, "tp"))},
    "trace_job_order": {
        "w.0.et": trace(collective(1, size=8), collective(2, size=16, data=[1])),
        "w.1.et": trace(collective(1, size=16), collective(2, size=8, data=[1]))},
    "trace_job_members": {
        "w.0.et": trace(collective(1, group="tp"), collective(2, group="dp"), first=about(groups=[("tp", [0, 1, 2]), ("dp", [1])])),
        "w.1.et": trace(collective(1, group="tp"), collective(2, group="tp"), first=about(groups=[("tp", [1, 0])]))},
    "trace_job_messages": {
        "w.0.et": trace(send(1, 1, 5), send(2, 1, 6), send(3, 7, 0)),
        "w.1.et": trace(receive(1, 0, 5, 99), receive(2, 0, 8))},
    "trace_job_deadlock": {
        "w.0.et": trace(receive(1, 1, 0), send(2, 1, 0, data=[1])),
        "w.1.et": trace(receive(1, 0, 0), send(2, 0, 0, data=[1]))},
    "trace_job_groups": {
        "w.0.et": trace(collective(1, group="tp")), "w.1.et": trace(collective(1, group="tp")),
        "groups.json": b'{"tp": [0, 1, 2]}\n', "bad.json": b'{"tp": [0, -1]}\n'},
    "trace_step": {"step.0.et": layers(), "step.1.et": layers()},
    "trace_values": {"t.et": every_value()},
    "trace_draw": {"step.0.et": layers()},
    "trace_diff": {"a.et": layers(),
                   "b.et": trace(node(11, name="one"), node(12, name="two", data=[11], duration=5), node(14, name="four")),
                   "c.et": trace(node(32, name="two", data=[31], duration=7), node(31, name="one"), node(33, name="three", data=[31]))},
    "trace_anonymize": {"step.0.et": layers()},
    "trace_timeline": {"step.0.et": layers(), "cycle.et": trace(node(1, data=[2]), node(2, data=[1]))},
    "trace_mistakes": {"t.et": THREE},
    "trace_foreign": {
        "kineto.json": b'{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0}\n  ],\n  "traceEvents": []\n}\n',
        "kineto.json.gz": packed(b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op"}]}\n'),
        "host.json": b'{\n  "schema": "1.1.0-chakra.0.0.4", "pid": 7, "start_ts": 1,\n  "nodes": []\n}\n',
        "w.txt": b"DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1024 1\n",
        "w.0.et": b"DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1024 1\n",
        "groups.json": b'{\n  "tp": [0, 1]\n}\n',
        "network.yml": b"topology: [ Ring ]\nnpus_count: [ 8 ]\n"},
    "trace_lone_file": {"w.0.et": trace(send(1, 1, 5), collective(2)), "w.1.et": trace(collective(1))},
    "trace_bad_json_lines": {
        "field.jsonl": b'{"id":1,"name":"a","type":"COMP_NODE"}\n{"id":2,"duraton_micros":5}\n',
        "type.jsonl": b'{"id":1,"name":"a","type":"COMPUTE"}\n',
        "number.jsonl": b'{"id":1,"attr":[{"name":"comm_size","int32_val":4294967296}]}\n',
        "cut.jsonl": b'{"id":1,"name":"a"}\n{"id":2,"na'},
}


EXAMPLES = {
    "step.0.et": training_step(0),
    "step.1.et": training_step(1),
    "broken/step.0.et": training_step(0),
    "broken/step.1.et": training_step(1, broken=True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--golden", type=pathlib.Path, default=ROOT / "tests/golden", help="the folder of cases")
    parser.add_argument("--examples", type=pathlib.Path, default=ROOT / "examples/traces", help="the folder of the guide's traces")
    arguments = parser.parse_args()
    golden = arguments.golden
    for case, files in CASES.items():
        (golden / case).mkdir(exist_ok=True)
        for name, content in files.items():
            (golden / case / name).write_bytes(content)
    (arguments.examples / "broken").mkdir(parents=True, exist_ok=True)
    for name, content in EXAMPLES.items():
        (arguments.examples / name).write_bytes(content)
    print(f"{len(EXAMPLES)} examples, {sum(map(len, CASES.values()))} files of {len(CASES)} cases")


if __name__ == "__main__":
    main()
