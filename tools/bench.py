#!/usr/bin/env python3
"""Runs the benches and compares their instruction counts with bench/baselines.json.

Wall time varies on a shared machine, so it is only printed. The comparison uses the number of instructions of the second
call of each benchmark (its set-up and one iteration), counted by callgrind: the same binary gives the same count. What is done
once in a process (tables, symbols of shared libraries) belongs to the first call and is not counted. A count that exceeds its baseline by more than `tolerance` is a failure; one that is lower by as much is reported (--update keeps it).
Counts of another compiler than the baseline's are only printed. Without valgrind only times are printed.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def benchmarks(program):
    listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, check=True)
    # Benchmarks in real time are only printed: they are large, or use several threads, and their counts vary.
    return [name for name in listed.stdout.split() if "/real_time" not in name]


def instructions_of_calls(program, name, calls):
    """Instructions inside the benchmark's function when it is called so many times, for one iteration each."""
    function = re.split(r"[/<]", name)[0]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect=*{function}*State*",
                        f"--callgrind-out-file={out}", program, f"--benchmark_filter=^{re.escape(name)}$",
                        "--benchmark_min_time=1e-9", f"--benchmark_repetitions={calls}"], capture_output=True, check=True)
        count = int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)[1])
    if count == 0:
        raise SystemExit(f"bench: {name} is not implemented by a function {function}(benchmark::State&)")
    return count


def instructions(program, name):
    return instructions_of_calls(program, name, 2) - instructions_of_calls(program, name, 1)


def compiler_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    path = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)[1]
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def verdict(name, count, baselines):
    """(line to print, whether it is a failure)"""
    before = baselines["instructions"].get(name)
    if before is None:
        return f"{name}: {count:,} instructions, no baseline", False
    tolerated = before * baselines["tolerance"]
    line = f"{name}: {count:,} instructions, baseline {before:,} ({(count - before) / before:+.1%})"
    if count > before + tolerated:
        return f"{line}: worse", True
    return line + (": better, keep it with --update" if count < before - tolerated else ""), False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path, help="the build folder of the bench preset")
    parser.add_argument("--baselines", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="rewrite the baselines")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="rooms whose benches to run (default: all)")
    args = parser.parse_args()
    baselines = json.loads(args.baselines.read_text())
    programs = [path for path in sorted((args.build / "benches").glob("*_bench"))
                if not args.rooms or path.name.removesuffix("_bench") in args.rooms]
    for program in programs:
        subprocess.run([program.resolve()], check=True)
    if not shutil.which("valgrind"):
        print("bench: valgrind is not installed; instructions are not counted")
        return 0
    counts = {f"{program.name}/{name}": instructions(program.resolve(), name)
              for program in programs for name in benchmarks(program.resolve())}
    verdicts = [verdict(name, count, baselines) for name, count in counts.items()]
    print("\n".join(line for line, _ in verdicts))
    compiler = compiler_of(args.build)
    if args.update:
        kept = {**baselines["instructions"], **counts} if args.rooms else counts
        args.baselines.write_text(json.dumps({**baselines, "compiler": compiler, "instructions": kept}, indent=2) + "\n")
    failures = sum(failed for _, failed in verdicts)
    judged = baselines["compiler"] in ("", compiler)
    print(f"bench: {len(counts)} benchmarks, {failures} worse"
          + ("" if judged else f" (not judged: the baselines are of {baselines['compiler']})"))
    return 1 if failures and judged and not args.update else 0


if __name__ == "__main__":
    sys.exit(main())
