#!/usr/bin/env python3
"""Runs the golden tests of commands and messages: compares the output of each command byte for byte.

A case is a folder tests/golden/<name> with
  cmd       one shell line that begins with `orrery` (lines that begin with # give the reason for the case);
  expected  standard output, a line `--- stderr`, standard error, a line `--- exit N`;
  anything else the command reads. It runs in a temporary copy of the folder, with the program on PATH.

Text that depends on the run or the machine is replaced on both sides before the comparison:
  the repository's root          <repo>       the temporary folder of the case   <case>
  the number after "wall_s",     <t>          the number before ` points/s`      <t>
  "comparison_wall_s", "points_per_s", "peak_rss_B", `compared in`
Lines of progress (`1,234 of 5,678 points, 21 %`), which slow machines print, are left out.
--update rewrites `expected` where it differs and shows the difference.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRESS = re.compile(r"^[0-9,]+ of [0-9,]+ [A-Za-z ]+, [0-9]+ %\n", re.MULTILINE)
NUMBER = r"[-+]?[0-9](?:[0-9.,]*[0-9])?(?:[eE][-+]?[0-9]+)?"
TIMEOUT_S = 300


def filtered(text, repo, case):
    text = text.replace(str(case), "<case>").replace(str(repo), "<repo>")
    text = re.sub(rf'("?\b(?:(?:comparison_)?wall_s|points_per_s|peak_rss_B|compared in)\b"?\s*[:=]?\s*){NUMBER}', r"\1<t>", text)
    return re.sub(rf"{NUMBER}(?:\s?[kMG])?(?= points/s)", "<t>", text)


def with_line_end(text):
    return text if not text or text.endswith("\n") else text + "\n\\ no newline at the end\n"


def rendered(stdout, stderr, code):
    return f"{with_line_end(stdout)}--- stderr\n{with_line_end(stderr)}--- exit {code}\n"


def command_of(case):
    lines = [line for line in (case / "cmd").read_text().splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) != 1 or not re.match(r"orrery\b", lines[0]):
        raise ValueError(f"{case.name}/cmd: must have one line that begins with `orrery`")
    return lines[0]


def run(case, program):
    """What the command of a case prints now, filtered."""
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}
    environment |= {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
    with tempfile.TemporaryDirectory(prefix="orrery-golden-") as folder:
        copy = pathlib.Path(folder).resolve() / case.name
        shutil.copytree(case, copy)
        environment["HOME"] = folder
        done = subprocess.run(["sh", "-c", command_of(case)], cwd=copy, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_S, check=False)
        stderr = PROGRESS.sub("", done.stderr.decode(errors="backslashreplace"))
        text = rendered(done.stdout.decode(errors="backslashreplace"), stderr, done.returncode)
        return filtered(text, ROOT, copy)


def compare(case, program):
    """(what is expected, what there is); an exception of the run counts as what there is."""
    expected = case / "expected"
    before = expected.read_text() if expected.is_file() else ""
    try:
        return before, run(case, program)
    except (ValueError, subprocess.TimeoutExpired) as error:
        return before, f"{error}\n"


def cases_named(folder, names):
    every = sorted(path.parent for path in folder.glob("*/cmd"))
    unknown = set(names) - {case.name for case in every}
    if unknown:
        raise SystemExit(f"golden: no case named {', '.join(sorted(unknown))} in {folder}")
    return [case for case in every if not names or case.name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the orrery to run")
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "tests/golden", help="the folder of cases")
    parser.add_argument("--update", action="store_true", help="rewrite the expected output")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every N-th case only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of parallel cases")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run (default: all)")
    args = parser.parse_args()
    program = args.program.resolve()
    cases = cases_named(args.cases, args.names)[::args.every]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda case: compare(case, program), cases))
    changed = [(case, *result) for case, result in zip(cases, results) if result[0] != result[1]]
    for case, before, now in changed:
        sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True),
                                                   f"{case.name}/expected", f"{case.name}: now"))
        if args.update:
            (case / "expected").write_text(now)
    what = "updated" if args.update else "differ; ./dev golden --update accepts them"
    print(f"golden: {len(cases)} cases, {len(changed)} {what if changed else 'differ'}")
    return 1 if changed and not args.update else 0


if __name__ == "__main__":
    sys.exit(main())
