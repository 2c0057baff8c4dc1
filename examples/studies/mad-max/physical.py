#!/usr/bin/env python3
"""The paper's cases under MAD-Max's equations and under physical, with the same figures of hardware.

Physical runs three times: without any latency or overhead (bare), with the latencies of the catalogue (links), and with
a real software stack instead of an ideal one. docs/models/mad-max-compared.md explains the differences.
"""
import pathlib

import studying

HERE = pathlib.Path(__file__).resolve().parent / "clusters"
DENSE_FP32 = ["--precision", "tf32", "--reduce-precision", "fp32", "--gradient-precision", "fp32", "--table-sharding", "table"]

# Physical's flags for a strategy of the dense layers. Tables mp are table-wise sharding over all ranks.
SAYS = {"(ddp)": ["--zero", 0], "(fsdp)": ["--zero", 3], "(fsdp,ddp)": ["--zero", 3, "--shard", 8]}
KINDS = ["all_to_all", "all_reduce", "all_gather", "reduce_scatter"]
SHOWN = ["model", "strategy", "semantics", "step_ms", "over_mad_max", "compute_ms", *(kind + "_ms" for kind in KINDS),
         "exposed_ms"]


def recommender(name, dense):
    classes = ["mlp", "transformer"] if "transformer" in name else ["mlp"]
    strategy = "; ".join(["emb=(mp)", *(f"{one}={dense}" for one in classes)])
    return {"model": name, "system": "zionex_128", "batch": 65536, "dense": dense, "strategy": strategy,
            "physical": ["--micro-batch", 512, *DENSE_FP32], "stack": "hugectr"}


def transformer(name, system, batch, dense, seq):
    of_sequence = ["--seq", seq] if seq else []  # a vision model has its own
    each = batch // int(system.split("_")[-1])  # no accumulation, as in the equations
    return {"model": name, "system": system, "batch": batch, "dense": dense, "strategy": f"attention={dense}; fc={dense}",
            "physical": [*of_sequence, "--micro-batch", each, "--precision", "bf16"], "stack": "fsdp"}


CASES = [
    recommender("dlrm_a", "(ddp)"),
    recommender("dlrm_a", "(fsdp)"),
    recommender("dlrm_a_transformer", "(ddp)"),
    recommender("dlrm_a_transformer", "(fsdp)"),
    recommender("dlrm_a_moe", "(ddp)"),
    recommender("dlrm_a_moe", "(fsdp)"),
    transformer("llama_65b", "dc_A_2048", 2048, "(fsdp)", 2048),
    transformer("llama_65b", "dc_A_2048", 2048, "(fsdp,ddp)", 2048),
    transformer("llama2_70b", "dc_A_2048", 2048, "(fsdp)", 4096),
    transformer("gpt3_175b", "dc_A_2048", 2048, "(fsdp)", 2048),
    transformer("vit_l", "zionex_128", 2048, "(ddp)", None),
    transformer("vit_l", "zionex_128", 2048, "(fsdp)", None),
]


def row(case, semantics, step, compute, kinds, exposed):
    times = {kind + "_ms": 1e3 * kinds.get(kind, 0.0) for kind in KINDS}
    return {"model": case["model"], "strategy": case["strategy"], "semantics": semantics, "step_ms": 1e3 * step,
            "over_mad_max": None, "compute_ms": 1e3 * compute, **times, "exposed_ms": 1e3 * exposed}


def mad_max(program, case):
    found = program.estimate(f"madmax/{case['model']}", f"madmax/{case['system']}", case["batch"], case["strategy"],
                             "--no-memory-rule")
    busy = found["breakdown_s"]
    return row(case, "mad-max", found["step_time_s"], busy["gemm"] + busy["embedding"], busy, busy["exposed_comm"])


def by_kind(terms):
    """Seconds of the critical rank's collectives; the bound of a collective starts with its kind."""
    kinds = {}
    for term in terms:
        kind = term["bound"].split(" ")[0]
        kinds[kind] = kinds.get(kind, 0.0) + term["count"] * term["time_s"]
    return kinds


def physical(program, case, cluster, stack, name):
    found = program.ask("estimate", "--model", f"madmax/{case['model']}", "--cluster", HERE / f"{cluster}.yaml",
                        "--global-batch", case["batch"], "--stack", stack, "--recompute", "none", *SAYS[case["dense"]],
                        *case["physical"])
    times = found["breakdown_s"]
    spent = times["compute"] + times["optimizer"] + times["host"]
    return row(case, name, found["step_time_s"], spent, by_kind(found["terms"]), times["exposed_comm"])


def main():
    asked = studying.arguments(__doc__)
    program = studying.Program(asked.program, asked.out)
    rows = []
    for case in CASES:
        answers = [mad_max(program, case),
                   physical(program, case, case["system"] + "_bare", HERE / "madmax_stack.yaml", "physical, bare"),
                   physical(program, case, case["system"], HERE / "madmax_stack.yaml", "physical, links"),
                   physical(program, case, case["system"], case["stack"], f"physical, {case['stack']}")]
        for answer in answers:
            answer["over_mad_max"] = answer["step_ms"] / answers[0]["step_ms"]
        rows += answers
    studying.publish("physical", rows, asked.out, SHOWN)


if __name__ == "__main__":
    main()
