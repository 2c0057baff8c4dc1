#!/usr/bin/env python3
"""A language model at increasing context lengths: tokens per second and the share of exposed communication, by strategy.

The paper shows this as a figure without numbers. The table also has its published value for 4,096 tokens (281.48 samples/s
of 4,096 tokens with every layer fully sharded, from its read-me).
"""
import studying

MODEL, CLUSTER, BATCH = "madmax/llama2_70b", "madmax/dc_A_2048", 2048
STRATEGIES = ("(fsdp)", "(fsdp,ddp)", "(tp,ddp)", "(ddp)")
PUBLISHED = {(4096, "(fsdp)"): 281.48 * 4096}


def main():
    asked = studying.arguments(__doc__)
    program = studying.Program(asked.program, asked.out)
    rows = []
    for task in ("pretrain", "inference"):
        for seq in (2048, 4096, 8192, 16384, 32768):
            for strategy in STRATEGIES:
                found = program.estimate(MODEL, CLUSTER, BATCH, f"emb=(ddp); transformer={strategy}", "--seq", seq,
                                         "--task", task, "--no-memory-rule")
                rows.append({"task": task, "seq": seq, "strategy": strategy, "tokens_per_s": found["tokens_per_s"],
                             "published_tokens_per_s": PUBLISHED.get((seq, strategy)) if task == "pretrain" else None,
                             "step_time_s": found["step_time_s"],
                             "exposed_share": found["comm_s"]["exposed"] / found["step_time_s"], "mfu": found["mfu"],
                             "weights_GB": found["memory_B"]["weights"] / 1e9})
    studying.publish("context", rows, asked.out, ["task", "seq", "strategy", "tokens_per_s", "published_tokens_per_s",
                                                  "exposed_share", "mfu"])


if __name__ == "__main__":
    main()
