#!/usr/bin/env python3
"""Writes data/references/mad-max: results of MAD-Max (arXiv 2310.02784) that `--semantics mad-max` must give back.

  tools/madmax_references.py FOLDER

FOLDER has what MAD-Max published or printed, as it was collected: its sheet of cloud instances (figure 16), sweeps over
strategies and tasks of its recommenders, and the events of five steps. Written are

  cloud.csv      one step of DLRM-A per cloud instance and strategy
  sweeps.csv     recommenders on ZionEX, all strategies, pre-training and inference
  tasks.csv      DLRM-A, what is trained and what is frozen
  runs.csv       five steps with their times
  timelines.csv  the events of those steps, in order, per stream

transformers.csv is not written by this tool: data/references/README.md says where it is from.
"""
import csv
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "data/references/mad-max"
RUNS = (("dlrm_a_zionex128_ddp", "dlrm_a", "zionex_128", "emb=(mp); mlp=(ddp)", 65536),
        ("dlrm_a_zionex128_fsdp", "dlrm_a", "zionex_128", "emb=(mp); mlp=(fsdp)", 65536),
        ("dlrm_a_zionex128_tp_ddp", "dlrm_a", "zionex_128", "emb=(mp); mlp=(tp,ddp)", 65536),
        ("dlrm_a_moe_zionex128_fsdp_pretrain", "dlrm_a_moe", "zionex_128", "emb=(mp); mlp=(fsdp)", 65536),
        ("llama65b_dcA2048_fsdp_ddp", "llama_65b", "dc_A_2048", "emb=(ddp); transformer=(fsdp,ddp)", 2048))


def write(name, header, lines):
    ROOT.mkdir(parents=True, exist_ok=True)
    with open(ROOT / name, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *lines])
    print(f"{name}: {len(lines)} rows, {(ROOT / name).stat().st_size} bytes")


def cloud(folder):
    times = ("t_gemm_ms", "t_emb_ms", "t_a2a_ms", "t_ar_ms", "t_ag_ms", "t_rs_ms", "exposed_ms")
    lines = []
    with open(folder / "cloud_dlrm_a.csv", newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            system = f"{row['system_cfg'].split('/')[1]}_{row['num_gpus']}"
            mlp = row["strategy_mlp"].replace("+", ",", 1)
            lines.append([system, mlp, row["emb"], row["code_qps"], row["code_iter_ms"], *(row[time] for time in times)])
    header = ["system", "mlp", "emb", "samples_per_s", "step_ms", "gemm_ms", "embedding_ms", "all_to_all_ms", "all_reduce_ms",
              "all_gather_ms", "reduce_scatter_ms", "exposed_ms"]
    write("cloud.csv", header, lines)


def sweeps(folder):
    """Lines are ('mlp', 'emb', GB of weights, 'OOM' or '', million samples/s, ms, exposed ms) under a heading."""
    lines, about = [], []
    for line in (folder / "madmax_dlrm_sweep.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("##"):
            about = line.split()[1:3]
            continue
        texts = line.split("'")
        figures = [one.strip(" ,)") for one in (texts[4] + texts[6]).split(",") if one.strip(" ,)")]
        lines.append([*about, texts[1], texts[3], figures[0], "no" if texts[5] == "OOM" else "yes", *figures[1:]])
    write("sweeps.csv", ["model", "task", "mlp", "emb", "weights_GB", "fits", "million_samples_per_s", "step_ms", "exposed_ms"], lines)


def tasks(folder):
    """Lines are "mlp rate MQPS time ms xGAIN" under a heading."""
    lines, about = [], []
    for line in (folder / "madmax_dlrm_a_tasks.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("##"):
            task = line.split()[1].rstrip(":")
            about = [task, "" if task != "finetune" else "emb" if "MLPs only" in line else "mlp"]
            continue
        mlp, rate, _, step, _, gain = line.split()
        lines.append([*about, mlp, rate, step, gain.lstrip("x")])
    write("tasks.csv", ["task", "frozen", "mlp", "million_samples_per_s", "step_ms", "gain"], lines)


def timelines(folder):
    runs, events = [], []
    for name, model, system, strategy, batch in RUNS:
        trace = json.loads((folder / f"trace_{name}.json").read_text(encoding="utf-8"))
        runs.append([name, model, system, strategy, batch, trace["iter_s"], trace["exposed_s"]])
        for stream, key in (("compute", "comp"), ("communication", "comm")):
            events += [[name, stream, one["name"], f"{one['t_start_s']:.13g}", f"{one['dur_s']:.13g}"] for one in trace[key]]
    write("runs.csv", ["run", "model", "system", "strategy", "batch", "step_s", "exposed_s"], runs)
    numbers = {run[0]: nth for nth, run in enumerate(runs)}
    write("timelines.csv", ["run", "stream", "event", "start_s", "duration_s"],
          [[numbers[name], *rest] for name, *rest in events])


def main():
    folder = pathlib.Path(sys.argv[1])
    cloud(folder)
    sweeps(folder)
    tasks(folder)
    timelines(folder)


if __name__ == "__main__":
    main()
