"""Time, memory, traffic and cost of distributed AI jobs, before the cluster is built.

Each function is a command of the program `orrery`; its keyword arguments are the command's flags with _ for -:

    import orrery
    step = orrery.estimate(model="llama-3.1-8b", cluster="dgx-h100", devices=64, global_batch=64, seq=8192)
    step.step_time_s, step.memory_B.total, step.plan.tp

Results are objects with the fields of `--json` (SI base units: seconds, bytes, FLOPs, joules) as attributes;
`to_dict()` gives plain dictionaries. Wrong input raises `orrery.Error` with the message and the place that the command
line prints. Long calls release the GIL, and Ctrl-C ends them.
"""
import inspect as _inspect
import json as _json
import keyword as _keyword
import os as _os
import pathlib as _pathlib
import tempfile as _tempfile

from . import _orrery
from ._result import Result

__all__ = ["Error", "Result", "describe", "list_entries", "read_trace"]


class Error(ValueError):
    """Wrong input. `errors`: for each mistake its file, line, column, path and message."""

    def __init__(self, errors):
        super().__init__("\n".join(error["text"] for error in errors))
        self.errors = errors


def _data():
    """The folder of the catalogue: $ORRERY_DATA, else that of the package; empty: the program's own rules."""
    folder = _pathlib.Path(__file__).parent / "data"
    return "" if "ORRERY_DATA" in _os.environ or not folder.is_dir() else str(folder)


def _text(value):
    if isinstance(value, (list, tuple, range)):
        return ",".join(_text(item) for item in value)
    return str(value)


def _arguments(flags, values, folder):
    """--flag=value for each keyword argument; a dictionary is written to a file of `folder`."""
    for key, value in values.items():
        name = "--" + key.strip("_").replace("_", "-")
        # Flags of another form of the command (`plan --task serve`) are not listed: True and False are switches there.
        unlisted = {"value": "" if isinstance(value, bool) else "X", "negation": f"--no-{name[2:]}", "many": False}
        flag = flags.get(name, unlisted)
        if value is None:
            continue
        if isinstance(value, bool) and not flag["value"]:
            if value or flag["negation"]:
                yield name if value else flag["negation"]
        elif isinstance(value, dict):
            file = _pathlib.Path(folder, name[2:] + (".json" if key == "model" else ".yaml"))
            file.write_text(_json.dumps(value))
            yield f"{name}={file}"
        elif flag["many"] and isinstance(value, (list, tuple)):
            yield from (f"{name}={_text(item)}" for item in value)
        else:
            yield f"{name}={_text(value)}"


def _run(arguments):
    code, out, err = _orrery.run(arguments, _data())
    if code >= 2 or (code == 1 and not out):
        start = err.find(b"{")
        document = _json.loads(err[start:]) if start >= 0 else {"errors": [{"text": err.decode(), "message": err.decode()}]}
        raise (Error if code <= 2 else RuntimeError)(document["errors"])
    return out


def _argument_name(flag):
    """--global-batch is global_batch; --as, which is a word of the language, is as_."""
    name = flag["name"].lstrip("-").replace("-", "_")
    return name + "_" if _keyword.iskeyword(name) else name


def _command(described):
    """The function of a command, from its own description."""
    flags = {flag["name"]: flag for flag in described["flags"]}

    def function(*positionals, **values):
        with _tempfile.TemporaryDirectory(prefix="orrery-") as folder:
            arguments = [described["name"], *map(str, positionals), *_arguments(flags, values, folder)]
            if "--emit" in flags and values.get("emit"):
                return _run(arguments).decode()
            return Result(_run([*arguments, "--json"]))

    documented = {_argument_name(flag): flag["doc"] for flag in flags.values() if flag["name"] != "--json"}
    lines = [f"    {name}: {doc}" for name, doc in documented.items()]
    function.__name__ = function.__qualname__ = described["name"]
    function.__doc__ = described["summary"] + "\n\nKeyword arguments (flags of `orrery " + described["name"] + "`):\n" + "\n".join(lines)
    kinds = _inspect.Parameter
    parameters = [kinds("positionals", kinds.VAR_POSITIONAL)] if described["positionals"] else []
    parameters += [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in documented]
    function.__signature__ = _inspect.Signature(parameters)
    return function


for _described in _orrery.commands():
    if _described["name"] not in ("list", "describe", "trace", "completion", "web", "report"):
        globals()[_described["name"]] = _command(_described)
        __all__.append(_described["name"])


def list_entries(kind):
    """Catalogue entries of a kind: "models", "clusters", "accelerators", "stacks", "engines", "algorithms". A list of results."""
    return Result(_run(["list", str(kind), "--json"])).entries


def describe(name):
    """A catalogue entry or a file as dictionaries, with the sources of its figures. A cluster that was changed can be
    given to `estimate` and the others: `cluster = describe("dgx-h100"); cluster["dimensions"][1]["bandwidth"] = "800 Gb/s"`."""
    return _json.loads(_run(["describe", str(name), "--json"]))["entry"]


def read_trace(file):
    """The nodes of an execution graph (Chakra of any version, JSON lines; also gzip, zstd) as a dictionary of NumPy arrays.

    id, name, type, start_ns, duration_ns: one entry a node. data_deps[data_begin[i]:data_begin[i + 1]] are the ids that
    node i waits for (ctrl_deps likewise). comm_size_B, comm_type, num_ops, tensor_size_B: -1 where a node has none.
    """
    try:
        return _orrery.trace_columns(_os.fspath(file))
    except ValueError as error:
        raise Error(_json.loads(str(error))["errors"]) from None
