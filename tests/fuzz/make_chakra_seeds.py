#!/usr/bin/env python3
"""Writes the seeds of the fuzzer of Chakra traces to chakra/: small files of every version of the schema, of every
type of attribute, compressed and broken. They are kept in the repository; run it again after changing it."""
import gzip
import pathlib
import struct

SEEDS = pathlib.Path(__file__).resolve().parent / "chakra"


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fixed32(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def framed(*messages):
    return b"".join(varint(len(message)) + message for message in messages)


def attribute(name, value):
    return text(10, text(1, name) + value)


def old_attribute(name, kind, value):
    return text(11, text(1, name) + number(2, kind) + value)


def every_type():
    """One attribute of each type, and a list of it."""
    out = b""
    for field in range(3, 33, 2):
        scalar = {3: fixed64, 5: fixed32, 19: fixed32, 21: fixed64, 23: fixed32, 25: fixed64}.get(field, number)
        scalar = text if field >= 29 else scalar
        value = "ab" if field >= 29 else 1
        out += attribute(f"v{field}", scalar(field, value))
        out += attribute(f"l{field}", text(field + 1, scalar(1, value) + scalar(1, value)))
    return out


def seeds():
    about = text(1, "0.0.4")
    node = number(1, 1) + text(2, "aten::add") + number(3, 4) + number(7, 10)
    coll = (number(1, 2) + text(2, "all_reduce") + number(3, 7) + text(4, b"\0\1") + text(5, b"\1") + number(6, 5)
            + text(8, text(1, "[1]") + text(2, "[[]]") + text(3, "['Int']")) + text(9, b"")
            + attribute("comm_type", number(9, 0)) + attribute("comm_size", number(9, 1 << 20))
            + attribute("pg_name", text(29, "dp")) + attribute("involved_dim", text(28, text(1, b"\1\0"))))
    group = text(2, text(1, "process_group/dp") + text(14, text(1, b"\0\1\2\3")))
    current = framed(about + group, node, coll)
    yield "current", current
    yield "every_type", framed(about, node + every_type())
    yield "gzip.gz", gzip.compress(current, mtime=0)
    yield "truncated", current[:-5]
    yield "empty_records", framed(b"", node, b"", coll)
    yield "unknown_fields", framed(about, node + number(11, 1) + text(12, "x") + fixed64(40, 1.0))
    yield "strange_graph", framed(about, number(1, 1) + text(5, b"\1\1\x2a"), number(1, 1) + number(3, 42))
    yield "v0_0_1", framed(
        number(1, 3) + text(2, "comp") + number(3, 3) + number(7, 5),
        number(1, 4) + text(2, "coll") + number(3, 6) + number(4, 3) + number(13, 3) + number(14, 1) + number(18, 64))
    yield "v0_0_1_wide", framed(
        number(1, 0) + text(2, "load") + number(3, 1) + number(5, 1 << 40) + number(6, 1 << 63) + number(16, 1 << 40)
        + number(12, 1 << 63))
    yield "v0_0_2", framed(
        number(1, 3) + text(2, "comp") + number(3, 3) + text(5, "[1]") + old_attribute("runtime", 1, number(5, 5))
        + old_attribute("weight", 0, fixed32(4, 0.5)) + old_attribute("ids", 4, number(8, 1) + number(8, 2)))
    yield "v0_0_3", framed(
        number(1, 3) + text(2, "comp") + number(3, 4) + old_attribute("is_cpu_op", 0, number(4, 1))
        + old_attribute("scope", 3, text(7, "x")) + old_attribute("names", 7, text(11, "a") + text(11, "b")))
    yield "v0_0_3_plus", framed(
        text(1, text(1, "schema") + number(2, 4) + text(8, "1.0.1")),
        number(1, 3) + text(2, "comp") + number(3, 4) + old_attribute("comm_size", 2, number(6, 64))
        + old_attribute("ids", 7, number(11, 8)))
    yield "v0_0_4_early", framed(text(1, text(1, "schema") + text(29, "1.0.2")), node, coll)


if __name__ == "__main__":
    for name, content in seeds():
        (SEEDS / name).write_bytes(content)
