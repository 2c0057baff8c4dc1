#!/usr/bin/env python3
"""Checks every #include of src/orrery and apps against cmake/rooms.txt.

The rules:
  - a room includes itself and rooms of a strictly lower level;
  - an include of ours is written "orrery/<room>/<file>.hpp" (or "apps/..." inside apps) and the file exists;
  - a header test_*.hpp is shared by tests: only tests include it;
  - the headers of a third-party package appear only in the .cpp files of the rooms that rooms.txt names, or in its
    headers too where the package is marked `+`; fmt is allowed everywhere; test and bench packages in *_test.cpp and
    *_bench.cpp;
  - the library does not print and does not read the clock: some standard headers are for apps and tests only;
  - numbers are read with std::from_chars: std::stod and the like depend on the locale of the process (tests may);
  - the tests of <room>/<file>_test.cpp are in namespace orrery::<room>…::<file>_test: test files are compiled together.
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# How an include starts -> the package of rooms.txt that it belongs to.
PACKAGES = {
    "fmt/": "fmt",
    "tl/": "tl-expected",
    "oneapi/": "tbb",
    "tbb/": "tbb",
    "yaml-cpp/": "yaml-cpp",
    "nlohmann/": "nlohmann-json",
    "CLI/": "cli11",
    "protozero/": "protozero",
    "zlib.h": "zlib",
    "zstd.h": "zstd",
    "sqlite3.h": "sqlite3",
    "mpi.h": "mpi",
    "httplib.h": "cpp-httplib",
    "gtest/": "test",
    "gmock/": "test",
    "rapidcheck": "test",
    "benchmark/": "bench",
    "oracle/": "oracle",
    "google/protobuf/": "oracle",
}

# Standard headers that the library must not include; its tests and apps may.
LEFT_TO_THE_EDGE = {
    "iostream": "the library never prints",
    "print": "the library never prints",
    "chrono": "the library never reads the clock",
    "ctime": "the library never reads the clock",
    "random": "distributions differ between standard libraries; results must not",
}

# Their decimal point is the locale's, which a host process may have set.
LOCALE = re.compile(r"\b(stof|stod|stold|strtof|strtod|strtold|atof|sscanf)\s*\(")

POSIX = re.compile(r"^(sys/|dirent\.h$|dlfcn\.h$|unistd\.h$|fcntl\.h$|signal\.h$|netdb|poll\.h$|spawn\.h$)")


class Rooms:
    """The table of rooms: levels, and which packages a room may include (and in headers too)."""

    def __init__(self, text):
        self.level = {}
        self.packages = {}
        self.header_packages = {}
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            room = words[1]
            self.level[room] = int(words[0])
            self.packages[room] = {word.rstrip("+") for word in words[2:]}
            self.header_packages[room] = {word[:-1] for word in words[2:] if word.endswith("+")}

    def room_of(self, path):
        """The room a source path or an include ("orrery/core/x.hpp") belongs to, or None."""
        parts = pathlib.PurePosixPath(path).parts
        if parts[0] == "src":
            parts = parts[1:]
        if parts[0] == "orrery":
            return parts[1] if len(parts) > 2 else None
        return "/".join(parts[:2]) if parts[0] == "apps" else None


def kind_of(path):
    if pathlib.PurePosixPath(path).name.startswith("test_"):
        return "test"
    for kind in ("test", "bench", "fuzz"):
        if path.endswith(f"_{kind}.cpp"):
            return kind
    return "header" if path.endswith(".hpp") else "source"


def complaint(rooms, path, quote, include, exists):
    """What is wrong with one include of the file at `path` (relative to the repository), or None."""
    room, kind = rooms.room_of(path), kind_of(path)
    if room not in rooms.level:
        return f"'{room}' is not a room of cmake/rooms.txt"
    if quote == '"':
        return own_complaint(rooms, room, kind, include, exists)
    return foreign_complaint(rooms, room, kind, include)


def own_complaint(rooms, room, kind, include, exists):
    if not include.startswith(("orrery/", "apps/")):
        return f'"{include}" is not written from the root: "orrery/<room>/<file>.hpp"'
    if not exists(include):
        return f'"{include}" does not exist'
    if kind_of(include) == "test" and kind in ("source", "header"):
        return f'"{include}" is for tests'
    other = rooms.room_of(include)
    if other not in rooms.level:
        return f'"{include}" is in no room of cmake/rooms.txt'
    if other != room and rooms.level[other] >= rooms.level[room]:
        return (f"{room} (level {rooms.level[room]}) includes {other} (level {rooms.level[other]}); "
                "a room includes only rooms of a lower level")
    return None


def foreign_complaint(rooms, room, kind, include):
    edge = room.startswith("apps/") or kind in ("test", "bench", "fuzz")
    package = next((name for start, name in PACKAGES.items() if include.startswith(start)), None)
    if package is None:
        if include in LEFT_TO_THE_EDGE and not edge:
            return f"<{include}>: {LEFT_TO_THE_EDGE[include]}"
        if POSIX.match(include):
            return None if edge or kind == "source" else f"<{include}>: system headers stay in .cpp files"
        if "/" in include or "." in include:
            return f"<{include}> is of a package that tools/check_layers.py does not know"
        return None
    if package == "fmt":
        return None
    if package in ("test", "bench"):
        return None if kind == package else f"<{include}> belongs in *_{package}.cpp"
    if package == "oracle":
        return None if kind in ("test", "bench") else f"<{include}>: protobuf's library is for tests and benches"
    if package not in rooms.packages[room]:
        users = sorted(name for name, packages in rooms.packages.items() if package in packages)
        return f"<{include}>: {package} stays in {', '.join(users) or 'no room'}"
    if kind == "header" and package not in rooms.header_packages[room]:
        return f"<{include}>: {package} stays in the .cpp files of {room}"
    return None


def own_namespace(source):
    return re.search(rf"^namespace orrery(::\w+)*::{source.stem} {{$", source.read_text(), re.M)


def check(root):
    """All complaints, as lines "path:line: what"."""
    root = pathlib.Path(root)
    rooms = Rooms((root / "cmake/rooms.txt").read_text())

    def exists(include):
        return (root / ("src" if include.startswith("orrery/") else ".") / include).is_file()

    complaints = []
    for top in ("src/orrery", "apps"):
        for source in sorted((root / top).rglob("*.[ch]pp")):
            path = source.relative_to(root).as_posix()
            if path.endswith("_test.cpp") and not own_namespace(source):
                complaints.append(f"{path}:1: its tests belong in a namespace …::{source.stem}")
            for number, line in enumerate(source.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                wrong = found and complaint(rooms, path, found[1], found[2], exists)
                if wrong:
                    complaints.append(f"{path}:{number}: {wrong}")
                locale = kind_of(path) in ("header", "source") and LOCALE.search(line.split("//")[0])
                if locale:
                    complaints.append(f"{path}:{number}: {locale[1]} depends on the locale; std::from_chars does not")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, help="the repository")
    complaints = check(parser.parse_args().root)
    print("\n".join(complaints + [f"layers: {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
