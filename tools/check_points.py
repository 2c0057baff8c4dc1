#!/usr/bin/env python3
"""Compares sampled points of `orrery plan` with `orrery estimate` of the same plans, one process each.

  tools/check_points.py build/release/orrery examples/spaces/p-b.yaml 1000 [--seed S]

Samples points uniformly (`plan --sample`), runs `orrery estimate --json` with the printed flags for every point with a
valid plan, and compares verdict, step time, memory, batch and plan to the last digit.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys


def output(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def differences(program, point):
    """The fields in which `orrery estimate` differs: [(field, in the sample, in the estimate)]."""
    estimate = output([program, "estimate", *point["flags"], "--json"])
    pairs = {
        "fits": (point["verdict"] == "priced", estimate["feasible"]),
        "step_time_s": (point["step_time_s"], estimate["step_time_s"]),
        "memory_B": (point["memory_B"], estimate["memory_B"]["total"]),
        "global_batch": (point["global_batch"], estimate["global_batch"]),
        "plan": (point["plan"], estimate["plan"]),
        "chosen": ([], estimate["chosen"]),
    }
    return [(field, *pair) for field, pair in pairs.items() if pair[0] != pair[1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("space")
    parser.add_argument("count", type=int, help="number of points to sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel estimates")
    options = parser.parse_args()
    sample = output([options.program, "plan", "--space", options.space, "--sample", str(options.count), "--seed",
                     str(options.seed), "--json"])
    verdicts = {}
    for point in sample["sample"]:
        verdicts[point["verdict"]] = verdicts.get(point["verdict"], 0) + 1
    possible = [point for point in sample["sample"] if "flags" in point]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda point: differences(options.program, point), possible))
    for point, wrong in zip(possible, found):
        for field, here, there in wrong:
            print(f"point {point['number']}: {field} is {here} in the search and {there} in the estimate")
            print(f"  orrery estimate {' '.join(point['flags'])}")
    differing = sum(1 for wrong in found if wrong)
    drawn = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
    print(f"{options.space}: {len(sample['sample'])} of {sample['points']} points sampled ({drawn}); "
          f"{len(possible)} compared, {differing} differ")
    return 1 if differing or not possible else 0


if __name__ == "__main__":
    sys.exit(main())
