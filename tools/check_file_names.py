#!/usr/bin/env python3
"""File names in comments and pages: `graph/check.hpp`, `golden.py`, `docs/models/search.md`. Each must be the name, or
the end of the path, of a file of this repository.

Read are comments of C++, CMake, Python, shell and YAML files, and the text of pages, without their blocks of code. Not
checked: files of other projects with their version (`README.md@744d01e`), files that users write (FILE.yaml, my-*), and
the names in tools/file_name_exemptions.txt.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"(?<![\w./<>{}*$-])(\w[\w./+-]*\.(?:cpp|hpp|py|yaml|md|sh|cmake))(?![\w/*<{(@])(?!\.\w)")
OF_USERS = re.compile(r"(?:.*/)?(?:FILE|my[-_]\w.*)\.\w+")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
SKIPPED = {".git", "build", "node_modules", ".cache", "__pycache__"}
WITH_HASH = {".py", ".sh", ".yaml", ".cmake"}


def files_of(root):
    """What git has or would take; in a copy without git, everything but what is built."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.split("\n")
    else:
        names = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))
                 if not SKIPPED & set(path.relative_to(root).parts)]
    return [name for name in names if name and (root / name).is_file()]


def known_names(files):
    """Every end of a path: a/b/c.hpp is also b/c.hpp and c.hpp."""
    names = set()
    for file in files:
        parts = file.split("/")
        names.update("/".join(parts[start:]) for start in range(len(parts)))
    return names


def exempt_names(root):
    file = root / "tools/file_name_exemptions.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return {line.split(":")[0] for line in lines if line.strip() and not line.startswith("#")}


def comments(path, text):
    """(line number, text) of what is prose in the file."""
    if path.suffix == ".md":
        blank = FENCE.sub(lambda fence: "\n" * fence.group().count("\n"), text)
        return enumerate(blank.split("\n"), 1)
    if path.suffix in {".cpp", ".hpp", ".proto"}:
        mark = re.compile(r'(?<![:"])//(.*)')
    elif path.suffix in WITH_HASH or path.name in {"CMakeLists.txt", "dev"}:
        mark = re.compile(r"(?:^|\s)#(.*)")
    else:
        return ()
    found = ((number, mark.search(line)) for number, line in enumerate(text.split("\n"), 1))
    return ((number, match.group(1)) for number, match in found if match)


def is_known(name, known):
    if name.startswith("_"):  # `_bench.cpp`: the end of names
        return any(one.endswith(name) for one in known)
    return name in known or OF_USERS.fullmatch(name) is not None


def missing(path, text, known):
    for number, prose in comments(path, text):
        for name in NAME.findall(prose):
            if not is_known(name.removeprefix("./"), known):
                yield number, name


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    root = parser.parse_args().root
    files = files_of(root)
    known = known_names(files) | exempt_names(root)
    found = 0
    for file in files:
        path = pathlib.Path(file)
        if path.suffix not in {".cpp", ".hpp", ".proto", ".md", *WITH_HASH} and path.name not in {"CMakeLists.txt", "dev"}:
            continue
        for number, name in missing(path, (root / file).read_text(errors="replace"), known):
            print(f"{file}:{number}: {name} is no file of this repository")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
