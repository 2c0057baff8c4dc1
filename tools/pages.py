#!/usr/bin/env python3
"""Checks the command output shown in the documentation: runs the commands of its code blocks and compares.

A block whose first line begins with `$ orrery` has commands, each followed by its output (standard output, then standard
error). Each command runs in a temporary folder that looks like the repository's root, so that it may write files, with
the program on PATH. Rates (`points/s`) vary and are not compared; progress, which slow machines print, is left out.
--update rewrites the pages.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/guide/examples.md", "docs/guide/plans.md", "docs/guide/launch.md", "docs/guide/traces.md",
         "docs/guide/simulate.md", "docs/guide/generate.md", "docs/guide/calibrate.md")
BLOCK = re.compile(r"(?<=^```\n)\$ orrery .*?(?=^```$)", re.DOTALL | re.MULTILINE)
RATE = re.compile(r"[0-9.]+ (?:[kM] )?(?=points/s)")
PROGRESS = re.compile(r"^[0-9,]+ of [0-9,]+ [A-Za-z ]+, [0-9]+ %\n", re.MULTILINE)
TIMEOUT_S = 300


def commands(block):
    """The commands of a block, as they are written: continued lines belong together."""
    lines, found = block.split("\n"), []
    for i, line in enumerate(lines):
        if not line.startswith("$ "):
            continue
        end = i
        while lines[end].endswith("\\"):
            end += 1
        found.append("\n".join(lines[i:end + 1]))
    return found


def run(command, path):
    """A command and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        for entry in ROOT.iterdir():
            (pathlib.Path(folder) / entry.name).symlink_to(entry)
        done = subprocess.run(["bash", "-c", command[2:]], cwd=folder, env={**os.environ, "PATH": path}, text=True,
                              capture_output=True, timeout=TIMEOUT_S, check=False)
    return command + "\n" + (done.stdout + PROGRESS.sub("", done.stderr)).rstrip("\n")


def renewed(text, path):
    """A page with the output of its commands as it is now."""
    blocks = [match[0] for match in BLOCK.finditer(text)]
    wanted = [command for block in blocks for command in commands(block)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = dict(zip(wanted, pool.map(lambda command: run(command, path), wanted)))
    return BLOCK.sub(lambda match: "\n\n".join(printed[c] for c in commands(match[0])) + "\n", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the orrery to run")
    parser.add_argument("--update", action="store_true", help="rewrite the pages")
    parser.add_argument("pages", nargs="*", default=PAGES, help="relative to the repository's root (default: all)")
    options = parser.parse_args()
    stale = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "orrery").symlink_to(options.program.resolve())
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        for name in options.pages:
            page = ROOT / name
            before = page.read_text(encoding="utf-8")
            after = renewed(before, path)
            same = RATE.sub("", before) == RATE.sub("", after)
            stale += not same
            if not same:
                sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name,
                                                           f"{name}: now", n=1))
            if options.update and not same:
                page.write_text(after, encoding="utf-8")
    print(f"pages: {len(options.pages)} read, {stale} {'updated' if options.update else 'differ'}"
          + ("" if options.update or not stale else "; ./dev golden --update accepts what is printed now"))
    return 1 if stale and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
