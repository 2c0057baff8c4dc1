#!/usr/bin/env python3
"""Checks that every relative link in every *.md file leads to a file, and every #anchor to a heading.

Links to the web are not followed: a check must not depend on somebody else's server.
"""
import argparse
import functools
import os
import pathlib
import re
import sys
import urllib.parse

SKIPPED = {".git", "build", "node_modules", ".cache"}
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s*\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
EXPLICIT_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")


def blank(found):
    return "\n" * found[0].count("\n")


def slug(heading):
    """A heading's anchor, as GitHub and GitLab make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.lower())
    return text.replace(" ", "-")


@functools.lru_cache(maxsize=None)
def anchors(path):
    text = FENCE.sub(blank, path.read_text())
    seen, out = {}, set(EXPLICIT_ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        base = slug(heading)
        count = seen.get(base, 0)
        seen[base] = count + 1
        out.add(f"{base}-{count}" if count else base)
    return out


def complaint(root, page, target):
    if re.match(r"^[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = urllib.parse.unquote(target).partition("#")
    start = root if name.startswith("/") else page.parent
    path = (start / name.lstrip("/")).resolve() if name else page
    if not path.exists():
        return f"{target} does not exist"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"{target}: no such heading in {path.name}"
    return None


def check(root):
    root = pathlib.Path(root).resolve()
    complaints, pages = [], []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        pages += [pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md")]
    for page in pages:
        text = INLINE_CODE.sub("", FENCE.sub(blank, page.read_text()))
        for link in LINK.finditer(text):
            wrong = complaint(root, page, link[1] or link[2])
            if wrong:
                line = text.count("\n", 0, link.start(1 if link[1] else 2)) + 1
                complaints.append(f"{page.relative_to(root)}:{line}: {wrong}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, help="the repository")
    complaints = check(parser.parse_args().root)
    print("\n".join(complaints + [f"links: {len(complaints)} broken"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
