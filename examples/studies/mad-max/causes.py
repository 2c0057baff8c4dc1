#!/usr/bin/env python3
"""The causes of the differences between MAD-Max's equations and physical, one at a time: collectives of DLRM-A on ZionEX.

exchange: all-to-all of one direction at 512 samples per device, for machines of different size. reduce: all-reduce of the
gradients of twenty MLP layers, 1.276 GB, for machines of different size. blend: the same over 128 devices, with faster links
between nodes. latency: one all-reduce over 128 devices, for messages of different size.
"""
import pathlib

import studying

HERE = pathlib.Path(__file__).resolve().parent / "clusters"
BARE, LINKS, STACK = HERE / "zionex_128_bare.yaml", HERE / "zionex_128.yaml", HERE / "madmax_stack.yaml"
SAMPLES = 512  # per device
GRADIENTS = 20 * 3994 * 3994 * 4  # bytes


def mad_max(program, devices, system="madmax/zionex_128"):
    busy = program.estimate("madmax/dlrm_a", system, SAMPLES * devices, "emb=(mp); mlp=(ddp)",
                            "--no-memory-rule", "--devices", devices)["breakdown_s"]
    return busy["all_to_all"] / 2, busy["all_reduce"]


def exchanged(program, devices):
    found = program.ask("estimate", "--model", "madmax/dlrm_a", "--cluster", BARE, "--devices", devices, "--stack", STACK,
                        "--global-batch", SAMPLES * devices, "--micro-batch", SAMPLES, "--recompute", "none", "--zero", 0,
                        "--precision", "tf32", "--table-sharding", "table")
    return next(term["time_s"] for term in found["terms"] if term["name"] == "tables.exchange")


def collective(program, cluster, size, devices):
    return program.ask("collective", "--op", "all_reduce", "--size", f"{size} B", "--cluster", cluster, "--devices", devices)


def seconds(answer):
    return answer["rows"][0]["time_s"]


def faster(program, factor):
    """Links between nodes `factor` times as fast: MAD-Max's system, and Orrery's cluster."""
    def change(system):
        system["scale_out"]["bandwidth"] = studying.times(system["scale_out"]["bandwidth"], factor)
    system = program.changed("madmax/zionex_128", f"scale_out_x{factor}", change)
    cluster = pathlib.Path(system).with_suffix(".yaml")
    cluster.write_text(BARE.read_text().replace("12.5 GB/s", f"{12.5 * factor} GB/s"))
    return system, cluster


def row(what, of, ours, bare, links):
    return {"what": what, "of": of, "mad_max_ms": 1e3 * ours, "bare_ms": 1e3 * bare, "bare_over_mad_max": bare / ours,
            "links_ms": None if links is None else 1e3 * links}


def main():
    asked = studying.arguments(__doc__)
    program = studying.Program(asked.program, asked.out)
    rows = []
    machines = [8, 16, 32, 64, 128]
    for devices in machines:
        rows.append(row("exchange", f"{devices} devices", mad_max(program, devices)[0], exchanged(program, devices), None))
    for devices in machines:
        bare, links = (seconds(collective(program, cluster, GRADIENTS, devices)) for cluster in (BARE, LINKS))
        rows.append(row("reduce", f"{devices} devices", mad_max(program, devices)[1], bare, links))
    for factor in (1, 2, 4, 10):
        system, cluster = faster(program, factor)
        bare = seconds(collective(program, cluster, GRADIENTS, 128))
        rows.append(row("blend", f"x {factor} between nodes", mad_max(program, 128, system)[1], bare, None))
    rate = GRADIENTS / mad_max(program, 128)[1]  # the same for any size
    for size in (1 << power for power in range(10, 31, 4)):
        bare, links = (seconds(collective(program, cluster, size, 128)) for cluster in (BARE, LINKS))
        rows.append(row("latency", f"{size} bytes", size / rate, bare, links))
    studying.publish("causes", rows, asked.out, list(rows[0]))


if __name__ == "__main__":
    main()
