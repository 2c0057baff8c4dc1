"""Writes __init__.pyi, the types and descriptions of all functions, from the flags of the commands: python -m orrery._stubs FILE"""
import sys

from . import _argument_name, _orrery

HEAD = '''"""Types of the functions of this package. Made from the flags of the commands."""
from typing import Any

import numpy

class Error(ValueError):
    errors: list[dict[str, Any]]

class Result:
    def to_dict(self) -> dict[str, Any]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: str) -> bool: ...

def list_entries(kind: str) -> list[Result]: ...
def describe(name: str) -> dict[str, Any]: ...
def read_trace(file: Any) -> dict[str, numpy.ndarray]: ...
'''


def type_of(flag):
    if not flag["value"]:
        return "bool | None"
    if "NAME|FILE" in flag["value"]:
        return "str | dict[str, Any] | None"
    number = "int | str" if flag["value"].startswith("N") and flag["value"] != "NAME" else "str | float"
    return f"{number} | list[Any] | None"


def stub(command):
    flags = [flag for flag in command["flags"] if flag["name"] != "--json"]
    names = [(_argument_name(flag), flag) for flag in flags]
    first = ["*positionals: Any"] if command["positionals"] else ["*"]
    arguments = first + [f"{name}: {type_of(flag)} = None" for name, flag in names]
    lines = [f"        {name}: {flag['doc']}" for name, flag in names]
    doc = command["summary"] + "\n\n" + "\n".join(lines)
    body = doc.replace("\\", "\\\\").replace('"""', "'''")
    return f"def {command['name']}(\n    " + ",\n    ".join(arguments) + f',\n) -> Result:\n    """{body}\n    """\n'


def text():
    left_out = ("list", "describe", "trace", "completion", "web", "report")
    return HEAD + "".join("\n" + stub(c) for c in _orrery.commands() if c["name"] not in left_out)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text())
