#!/usr/bin/env python3
"""The gain of better hardware: one figure of the machine ten times better, then all of them, with the best strategy for
each; and the machine in several sizes.

The paper shows gains as a figure without numbers; the row of the unchanged machine also has its 1.21 MQPS.
"""
import studying

JOBS = (("madmax/dlrm_a", "madmax/zionex_128", 65536), ("madmax/llama_65b", "madmax/dc_A_2048", 2048))
FACTOR = 10
PUBLISHED = {("madmax/dlrm_a", "as it is"): 1.21e6}


def compute(system):
    system["peak"] = {name: studying.times(peak, FACTOR) for name, peak in system["peak"].items()}


def bandwidth_of(links):
    def change(system):
        system[links]["bandwidth"] = studying.times(system[links]["bandwidth"], FACTOR)
    return change


def figure(name):
    def change(system):
        system[name] = studying.times(system[name], FACTOR)
    return change


CHANGES = {"as it is": (), "compute": (compute,), "memory capacity": (figure("memory"),),
           "memory bandwidth": (figure("memory_bandwidth"),), "links inside nodes": (bandwidth_of("scale_up"),),
           "links between nodes": (bandwidth_of("scale_out"),)}
CHANGES["all"] = tuple(change for changes in list(CHANGES.values()) for change in changes)


def best_row(program, model, cluster, batch, label, **more):
    found = program.plan(model, cluster, batch)["best"]
    best = found[0] if found else {}
    return {"model": model, "change": label, "devices": best.get("devices"), "strategy": best.get("strategy", "nothing fits"),
            "samples_per_s": best.get("samples_per_s"), "published_samples_per_s": None, **more}


def main():
    asked = studying.arguments(__doc__)
    program = studying.Program(asked.program, asked.out)
    rows = []
    for model, cluster, batch in JOBS:
        of_model = []
        for label, changes in CHANGES.items():
            name = f"{cluster.split('/')[1]}_{label.replace(' ', '_')}"

            def change_all(system, changes=changes):
                for change in changes:
                    change(system)

            of_model.append(best_row(program, model, program.changed(cluster, name, change_all), batch, label))
        for devices in (256, 512, 1024) if "dlrm" in model else (512, 1024):
            copied = program.changed(cluster, f"{cluster.split('/')[1]}_x", lambda system, n=devices: system.update(devices=n))
            of_model.append(best_row(program, model, copied, batch, f"{devices} devices"))
        for row in of_model:
            row["gain"] = row["samples_per_s"] / of_model[0]["samples_per_s"]
        rows += of_model
    # The strategy that the paper validated, which its own memory rule excludes.
    validated = program.estimate("madmax/dlrm_a", "madmax/zionex_128", 65536, "emb=(mp); mlp=(ddp)", "--no-memory-rule")
    rows.append({"model": "madmax/dlrm_a", "change": "as it is, validated strategy", "devices": validated["devices"],
                 "strategy": validated["strategy"], "samples_per_s": validated["samples_per_s"],
                 "published_samples_per_s": PUBLISHED["madmax/dlrm_a", "as it is"], "gain": None})
    studying.publish("scaling", rows, asked.out, ["model", "change", "devices", "strategy", "samples_per_s",
                                                  "published_samples_per_s", "gain"])


if __name__ == "__main__":
    main()
