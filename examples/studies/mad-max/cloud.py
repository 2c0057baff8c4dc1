#!/usr/bin/env python3
"""A recommender on rented instances: throughput, GPU-hours, dollars and energy, and the Pareto front.

Each row also has the throughput of the paper's table (arXiv 2310.02784, figure 16; rounded to 10,000 there, except for
instances without NVLink), from published_cloud.csv.
"""
import csv
import pathlib

import studying

MODEL, BATCH, SAMPLES = "madmax/dlrm_a", 65536, 5e9
# Devices with 80 GB are separate instances; their network is that of the instance with 40 GB.
MEMORY_80 = {("A", "A100-80GB"): ("cloud_A_a100.40", 5.12125), ("B", "A100-80GB"): ("cloud_B_a100.40", 4.09625),
             ("C", "A100-80GB"): ("cloud_C_a100.40", 5.70875)}


def system_of(program, row):
    provider, gpu, devices = row["provider"], row["gpu"], row["devices"]
    if row["system"]:
        return f"madmax/{row['system']}_{devices}"
    base, price = MEMORY_80[provider, gpu]

    def change(system):
        system["memory"] = "80 GB"
        system["usd_per_device_hour"] = price

    return program.changed(f"madmax/{base}_{devices}", f"{base}_80GB_{devices}", change)


def row_of(program, published):
    cluster = system_of(program, published)
    found = program.estimate(MODEL, cluster, BATCH, f"emb=(mp); mlp=({published['strategy']})")
    system = program.ask("describe", cluster)["entry"]
    rate, devices = found["samples_per_s"], found["devices"]
    gpu_hours = SAMPLES / rate / 3600 * devices
    return {"instance": f"{published['provider']} {published['gpu']}", "devices": devices,
            "strategy": published["strategy"], "samples_per_s": rate, "published_samples_per_s": float(published["qps"]),
            "error": rate / float(published["qps"]) - 1, "memory_GB": found["memory_B"]["total"] / 1e9,
            "fits": found["feasible"], "hours": SAMPLES / rate / 3600, "gpu_hours": gpu_hours,
            "usd": gpu_hours * system["usd_per_device_hour"], "MWh": gpu_hours * system["watts_per_device"] / 1e6}


def mark_front(rows, cost):
    """The Pareto front of throughput and a cost."""
    for row in rows:
        beaten = any(other["samples_per_s"] >= row["samples_per_s"] and other[cost] <= row[cost] and
                     (other["samples_per_s"], other[cost]) != (row["samples_per_s"], row[cost]) for other in rows)
        row[f"on_front_of_{cost}"] = not beaten


def main():
    asked = studying.arguments(__doc__)
    program = studying.Program(asked.program, asked.out)
    with (pathlib.Path(__file__).parent / "published_cloud.csv").open() as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = [row_of(program, published) for published in csv.DictReader(lines)]
    for cost in ("gpu_hours", "usd", "MWh"):
        mark_front(rows, cost)
    rows.sort(key=lambda row: -row["samples_per_s"])
    studying.publish("cloud", rows, asked.out, ["instance", "devices", "strategy", "samples_per_s",
                                                "published_samples_per_s", "gpu_hours", "usd", "MWh", "on_front_of_gpu_hours",
                                                "on_front_of_usd", "on_front_of_MWh"])


if __name__ == "__main__":
    main()
