#!/usr/bin/env python3
"""Writes docs/models/agreement.md: estimate and simulate of the same jobs, and the causes of their differences.

  tools/agreement.py --program build/release/orrery [--check]

--check exits with 1 if the page differs from what the program says.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/models/agreement.md"

# Heading, then flags of estimate: dense models, schedules, sharding, sequences, experts, others; 8 to 16,384 devices.
JOBS = """
# Dense models, tensor and data parallelism
--model llama-3.1-8b --cluster dgx-h100 --devices 8 --tp 1 --zero 3 --micro-batch 1 --global-batch 64 --seq 8192
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --tp 2 --micro-batch 1 --global-batch 256 --seq 8192
--model llama-3.1-8b --cluster dgx-a100 --devices 64 --tp 4 --sequence-parallel --micro-batch 1 --global-batch 256 --seq 4096
--model llama-2-13b --cluster dgx-a100 --devices 128 --tp 8 --micro-batch 4 --global-batch 512 --seq 4096
--model llama-3.1-8b --cluster azure-nd-mi300x-v5 --devices 64 --tp 1 --zero 3 --micro-batch 2 --global-batch 256 --seq 8192
--model llama-3.1-8b --cluster dgx-h100 --devices 1024 --tp 1 --zero 3 --micro-batch 1 --global-batch 1024 --seq 8192
--model llama-3.1-8b --cluster aws-p4d --devices 64 --tp 1 --zero 2 --micro-batch 1 --global-batch 256 --seq 4096 --recompute full
--model gpt3-175b --cluster dgx-a100 --devices 1024 --tp 8 --pp 16 --micro-batch 1 --global-batch 1536 --seq 2048
--model llama-3.1-70b --cluster dgx-h100 --devices 512 --tp 8 --pp 4 --micro-batch 1 --global-batch 512 --seq 8192
--model llama-3.1-405b --cluster dgx-h100 --devices 16384 --tp 8 --pp 16 --micro-batch 1 --global-batch 2048 --seq 8192
--model megatron-22b --cluster dgx-a100 --devices 8 --tp 8 --micro-batch 4 --global-batch 4 --seq 2048
--model megatron-1t --cluster dgx-a100 --devices 512 --tp 8 --pp 64 --micro-batch 1 --global-batch 512 --seq 2048
# Pipeline schedules
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --pp 8 --schedule gpipe --micro-batch 1 --global-batch 128 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --pp 8 --schedule 1f1b --micro-batch 1 --global-batch 128 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --pp 4 --vpp 4 --schedule interleaved --micro-batch 1 --global-batch 128 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --pp 8 --schedule zero-bubble --micro-batch 1 --global-batch 128 --seq 4096
--model llama-3.1-70b --cluster dgx-h100 --devices 256 --tp 8 --pp 8 --vpp 5 --schedule interleaved --micro-batch 1 --global-batch 256 --seq 8192
--model llama-3.1-70b --cluster dgx-h100 --devices 256 --tp 4 --pp 8 --schedule zero-bubble --micro-batch 1 --global-batch 256 --seq 4096
--model deepseek-v2-lite --cluster dgx-h100 --devices 64 --pp 4 --ep 8 --schedule dualpipe --micro-batch 1 --global-batch 128 --seq 4096
--model gpt3-175b --cluster dgx-a100 --devices 512 --tp 8 --pp 8 --vpp 12 --schedule interleaved --micro-batch 1 --global-batch 512 --seq 2048 --sequence-parallel
--model bloom-176b --cluster dgx-a100 --devices 384 --tp 4 --pp 12 --micro-batch 2 --global-batch 2048 --seq 2048
--model megatron-145.6b --cluster dgx-a100 --devices 1536 --tp 8 --pp 8 --micro-batch 2 --global-batch 2304 --seq 2048
# Overlap of tensor-parallel communication
--model llama-3.1-70b --cluster dgx-h100 --devices 64 --tp 8 --tp-overlap ring --sequence-parallel --pp 4 --micro-batch 1 --global-batch 64 --seq 8192
--model llama-3.1-70b --cluster dgx-h100 --devices 64 --tp 8 --tp-overlap pipe --sequence-parallel --pp 4 --micro-batch 1 --global-batch 64 --seq 8192
# ZeRO, hybrid sharding, buckets
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 0 --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 1 --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 2 --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 3 --shard 8 --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 3 --no-gather-overlap --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --zero 1 --no-dp-overlap --micro-batch 1 --global-batch 256 --seq 4096
--model llama-3.1-70b --cluster dgx-h100 --devices 512 --zero 3 --shard 64 --micro-batch 1 --global-batch 512 --seq 4096
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --tp 2 --zero 1 --bucket 50000000 --micro-batch 1 --global-batch 256 --seq 4096
--model mpt-7b --cluster dgx-h100 --stack fsdp --devices 64 --zero 3 --micro-batch 2 --global-batch 512 --seq 2048
--model mpt-30b --cluster dgx-h100 --stack fsdp --devices 256 --zero 3 --micro-batch 1 --global-batch 512 --seq 2048
# Long sequences
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --cp 8 --cp-method ring --micro-batch 1 --global-batch 32 --seq 65536
--model llama-3.1-8b --cluster dgx-h100 --devices 64 --cp 8 --cp-method ulysses --micro-batch 1 --global-batch 32 --seq 65536
--model llama-3.1-70b --cluster dgx-h100 --devices 256 --tp 8 --cp 4 --pp 4 --micro-batch 1 --global-batch 32 --seq 131072
--model llama-3.1-405b --cluster dgx-h100 --devices 16384 --tp 8 --cp 16 --pp 16 --micro-batch 1 --global-batch 128 --seq 131072
# Recompute, offload, adapters
--model llama-3.1-70b --cluster dgx-h100 --devices 64 --tp 8 --pp 2 --recompute selective --micro-batch 1 --global-batch 64 --seq 8192
--model llama-3.1-70b --cluster dgx-h100 --devices 64 --tp 8 --pp 2 --recompute full --micro-batch 1 --global-batch 64 --seq 8192
--model llama-3.1-8b --cluster dgx-h100 --devices 8 --tp 2 --offload optimizer --micro-batch 1 --global-batch 32 --seq 8192
--model llama-3.1-8b --cluster dgx-h100 --devices 8 --tp 2 --offload activations --micro-batch 1 --global-batch 32 --seq 8192
--model llama-3.1-70b --cluster dgx-h100 --devices 8 --tp 8 --task finetune --lora 16 --micro-batch 1 --global-batch 8 --seq 4096
# Mixtures of experts
--model mixtral-8x7b --cluster dgx-h100 --devices 64 --ep 8 --micro-batch 1 --global-batch 256 --seq 4096
--model mixtral-8x7b --cluster dgx-h100 --devices 64 --tp 2 --ep 4 --pp 2 --micro-batch 1 --global-batch 256 --seq 4096
--model mixtral-8x22b --cluster dgx-h100 --devices 256 --tp 4 --ep 8 --pp 4 --micro-batch 1 --global-batch 256 --seq 8192
--model qwen3-30b-a3b --cluster dgx-h100 --devices 64 --ep 16 --micro-batch 1 --global-batch 256 --seq 4096
--model deepseek-v3 --cluster dgx-h100 --devices 2048 --ep 64 --pp 16 --micro-batch 1 --global-batch 2048 --seq 4096
--model deepseek-v2 --cluster gb200-nvl72 --devices 288 --ep 16 --pp 2 --micro-batch 1 --global-batch 288 --seq 4096
--model gpt-oss-120b --cluster dgx-b200 --devices 64 --ep 32 --micro-batch 1 --global-batch 256 --seq 4096
# Other models
--model t5-11b --cluster dgx-a100 --devices 64 --tp 4 --micro-batch 4 --global-batch 256 --seq 512
--model bert-large --cluster dgx-a100 --devices 8 --micro-batch 16 --global-batch 512 --seq 512
--model vit-h14 --cluster dgx-h100 --devices 32 --micro-batch 32 --global-batch 4096
--model dlrm-dcnv2 --cluster dgx-a100 --devices 16 --global-batch 65536
--model dlrm-criteo-1tb --cluster dgx-h100 --devices 32 --global-batch 65536
# Inference
--model llama-3.1-8b --cluster dgx-h100 --devices 8 --task inference --tp 2 --prompt 1024 --generate 64 --batch 64
--model llama-3.1-70b --cluster dgx-h100 --devices 8 --task inference --tp 8 --prompt 2048 --generate 64 --batch 32
--model llama-3.1-70b --cluster dgx-h100 --devices 16 --task inference --tp 8 --pp 2 --prompt 2048 --generate 1 --batch 32
--model mixtral-8x7b --cluster dgx-h100 --devices 8 --task inference --tp 2 --ep 4 --prompt 1024 --generate 32 --batch 64
--model deepseek-v3 --cluster dgx-h200 --devices 32 --task inference --ep 32 --prompt 2048 --generate 16 --batch 256
"""

INTRODUCTION = """# Agreement of estimate and simulate

**Where do the closed form and the simulation of the same job differ, and why?** `tools/agreement.py` writes this page: {count} jobs of
the catalogue with 8 to 16,384 devices, each by `orrery simulate` with the flags of the row. Percentages are differences from the
estimate.

- *estimate*: the step, or batch of requests, in [closed form](estimate.md).
- *simulated*: call by call, with ports shared ([flow](flow.md)). What differs from *estimate* has the causes that are named below
  each table; the closed form shares ports block by block ([shared ports](estimate.md#shared-ports)).
- *separate ports*: simulated, every collective and message with ports of its own. The difference to *simulated* is contention.
- *contention*: which calls met on which ports, and what they lost together, as a mean over devices. Calls can lose time that the step
  does not: overlapped ones.

In random jobs without the named causes, *separate ports* equals the closed form without sharing, to the rounding of the graphs
(`plan_simulation_test.cpp`).
"""

# Heading of a table: causes that were measured by hand.
EXPLAINED = {"Mixtures of experts": """
gpt-oss-120b differs most because of interference (0.22 of a kernel's rate while gathers and reductions run). The closed form slows whole
layers, waits for experts included, and loses 50 ms by it. In the simulation only kernels are slower. They run 37 % of this step, gathers and
reductions run mostly during the waits, and the step loses 6 ms. Without interference, the simulation takes 0.75 % longer than the estimate.
Slowing only kernels in the closed form was tried: gpt-oss-120b then differs by -0.12 %, but deepseek-v2 by +1.43 % instead of -0.33 %,
and the median error of `validate` for `mlperf_gpt3` grows by 0.35 points.
"""}


def jobs():
    section = ""
    for line in JOBS.strip().splitlines():
        if line.startswith("# "):
            section = line[2:]
        else:
            yield section, line


def simulated(program, flags):
    run = subprocess.run([program, "simulate", *flags.split(), "--json"], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"orrery simulate {flags}\n{run.stderr}")
    return json.loads(run.stdout)


def seconds(value):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value * 1e9:.4g} ns"


def percent(value, base):
    change = value / base - 1
    return "=" if abs(change) < 5e-6 else f"{change:+.2%}".replace("%", " %")


def label(flags):
    """llama-3.1-8b on 64 of dgx-h100: tp 2, micro-batch 1, ..."""
    given = [flag.split(" ", 1) for flag in flags.removeprefix("--").split(" --")]
    value = {words[0]: words[1] for words in given if len(words) == 2}
    rest = [" ".join(words) for words in given if words[0] not in ("model", "cluster", "devices")]
    return f"{value['model']} on {int(value['devices']):,} of {value['cluster']}: {', '.join(rest)}"


def causes(plan):
    found = []
    step = plan["simulated_step_s"]
    for row in plan["contention"][:3]:
        if row["lost_s"] >= 1e-4 * step:
            found.append(f"{row['kind']} with {row['other']} on {row['dimension']}: {seconds(row['lost_s'])}")
    return "; ".join(found) or "none above 0.01 % of the step"


def section_of(title, rows):
    lines = [f"\n## {title}\n", "| job | estimate | simulated | separate ports | contention |", "|---|---|---|---|---|"]
    notes = []
    for flags, plan in rows:
        base = plan["estimate_step_s"]
        named = [re.sub(r" \(at most [^)]* longer\)", "", note) for note in plan["notes"]]
        notes += [note for note in named if note not in notes]
        marks = "".join(f" [{notes.index(note) + 1}]" for note in named)
        lines.append(f"| {label(flags)} | {seconds(base)} | {percent(plan['simulated_step_s'], base)}{marks} | "
                     f"{percent(plan['unshared_step_s'], base)} | {causes(plan)} |")
    if notes:
        lines.append("")
        lines += [f"{i + 1}. {note}" for i, note in enumerate(notes)]
    lines += EXPLAINED.get(title, "").rstrip().splitlines()
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    listed = list(jobs())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plans = [result["plan"] for result in pool.map(lambda job: simulated(args.program, job[1]), listed)]
    text = INTRODUCTION.format(count=len(listed))
    for title in dict.fromkeys(section for section, _ in listed):
        text += section_of(title, [(flags, plan) for (section, flags), plan in zip(listed, plans) if section == title])
    if args.check:
        same = PAGE.exists() and PAGE.read_text() == text
        print("agreement: " + ("as the program says" if same else "differs; run tools/agreement.py"))
        return 0 if same else 1
    PAGE.write_text(text)
    print(f"agreement: {len(listed)} jobs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
