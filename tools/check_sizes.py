#!/usr/bin/env python3
"""Checks the length of files and of C++ functions.

A file: more than 400 lines gives a remark, more than 600 is an error. A C++ function: more than 70 lines, from its first
line to its closing brace, is an error. Exceptions (tables) are listed in tools/size_exemptions.txt as `path: reason` or
`path:function: reason`; an entry that no longer applies is an error as well.

Functions are found by their braces, without parsing C++: inside namespaces and classes, a parameter list before a `{`
begins a function. Lambdas are part of the function that contains them.
"""
import argparse
import pathlib
import re
import sys

FILE_REMARK, FILE_LIMIT, FUNCTION_LIMIT = 400, 600, 70
TOPS = ("src", "apps", "tests", "tools", "cmake")
SUFFIXES = (".hpp", ".cpp", ".py", ".cmake", ".sh")

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def code_only(text):
    """The text without comments, literals and preprocessor lines, with its line breaks kept."""
    return NOT_CODE.sub(lambda found: " " + "\n" * found[0].count("\n"), text)


def without_groups(head):
    """A declaration without its template arguments and parameter lists."""
    head = re.sub(r"operator\s*(\(\)|[^\s\w(]+)", "operator", head)
    for group in (r"\([^()]*\)", r"<[^<>]*>"):
        before = None
        while before != head:
            before, head = head, re.sub(group, "@" if group[0] == "\\" else " ", head)
    return head


def opens(head):
    """What a `{` after this text opens: a 'scope' of declarations, a 'function', or a 'value'."""
    flat = without_groups(head)
    if SCOPE.search(flat) and "@" not in re.sub(r"\b(alignas|__attribute__)\s*@", "", flat):
        return "scope"
    if "@" not in flat:
        return "value"
    in_initialisers = re.search(r"@[^:@]*(?<!:):(?!:)", flat)
    if in_initialisers and re.search(r"\w\s*$", flat):
        return "value"
    return "function"


def name_of(head):
    found = re.search(r"([~\w:]*\w|operator\s*[^\s\w]+)\s*\(", head)
    return found[1] if found else "?"


def skip_block(code, start):
    """The index after the `}` that closes the `{` at `start`."""
    depth = 0
    for brace in re.finditer(r"[{}]", code[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.end()
    return len(code)


def functions(text):
    """(name, first line, number of lines) of every function of a C++ source."""
    code = code_only(text)
    out = []
    at = head_start = 0
    while at < len(code):
        char = code[at]
        if char == "{":
            head = code[head_start:at]
            kind = opens(head)
            if kind == "scope":
                head_start = at + 1
            else:
                end = skip_block(code, at)
                if kind == "function":
                    begin = head_start + len(head) - len(head.lstrip())
                    out.append((name_of(head), code.count("\n", 0, begin) + 1, code.count("\n", begin, end) + 1))
                    head_start = end
                at = end - 1
        elif char in ";}":
            head_start = at + 1
        at += 1
    return out


def read_exemptions(text):
    """{(path, function or None): reason}"""
    out = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            what, reason = line.split(": ", 1)
            path, _, function = what.partition(":")
            out[path, function or None] = reason
    return out


def too_long(path, text):
    """[(key for exemptions, complaint)] of one file."""
    lines = text.count("\n")
    out = [((path, None), f"{path}: {lines} lines, more than {FILE_LIMIT}")] if lines > FILE_LIMIT else []
    if path.endswith((".hpp", ".cpp")):
        out += [((path, name), f"{path}:{first}: {name} has {length} lines, more than {FUNCTION_LIMIT}")
                for name, first, length in functions(text) if length > FUNCTION_LIMIT]
    return out


def check(root):
    """(complaints, remarks)"""
    root = pathlib.Path(root)
    listed = root / "tools/size_exemptions.txt"
    exemptions = read_exemptions(listed.read_text()) if listed.is_file() else {}
    complaints, remarks, used = [], [], set()
    paths = [path for top in TOPS for path in (root / top).rglob("*") if path.suffix in SUFFIXES]
    for source in sorted(paths + [root / "dev"]):
        if not source.is_file():
            continue
        path, text = source.relative_to(root).as_posix(), source.read_text()
        found = too_long(path, text)
        used |= {key for key, _ in found if key in exemptions}
        complaints += [what for key, what in found if key not in exemptions]
        if FILE_REMARK < text.count("\n") <= FILE_LIMIT:
            remarks.append(f"{path}: {text.count(chr(10))} lines; over {FILE_REMARK}, think of splitting it")
    complaints += [f"tools/size_exemptions.txt: {path}{':' + name if name else ''} needs no exemption"
                   for path, name in exemptions if (path, name) not in used]
    return complaints, remarks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, help="the repository")
    parser.add_argument("--longest", type=int, metavar="N", help="list the N longest functions instead")
    args = parser.parse_args()
    if args.longest:
        every = [(length, f"{path}:{first}: {name}") for top in ("src", "apps")
                 for path in sorted((pathlib.Path(args.root) / top).rglob("*.[ch]pp"))
                 for name, first, length in functions(path.read_text())]
        for length, where in sorted(every, reverse=True)[:args.longest]:
            print(f"{length:5} {where}")
        return 0
    complaints, remarks = check(args.root)
    print("\n".join(remarks + complaints + [f"sizes: {len(complaints)} too long"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
