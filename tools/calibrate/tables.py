"""Rows of measurements that a calibration uses, their predictions, and which rows are held out."""
import csv
import hashlib
import pathlib
import re
import subprocess
import tempfile

# What names, measures or comments; two rows that differ in nothing else are one configuration.
NOT_CONFIGURATION = {"id", "source", "config_group", "notes", "quality", "value", "value2", "value_spread", "step_time_s",
                     "step_time_quality", "time_us", "tflops", "gbps", "algbw_GBps", "busbw_GBps", "metric", "metric2",
                     "unit", "unit2", "hw_bw_src", "opt_sharding", "params_b", "nccl_version", "unscored"}
RELEASE = re.compile(r"\b(\d\d)\.(\d\d)(?:\.(\d+))?\b")


SETUP_ROW = "setup_row"


class Row:
    def __init__(self, table, cells):
        self.table, self.cells = table, cells
        self.family = cells.get("family") or (cells.get("source", "") if "args" in cells else "")
        self.group = f"{self.family}/{cells.get('config_group') or cells.get('id', '')}"
        self.weight = 1.0


def files(places, names):
    """Files of the given names in the given folders; a place may be a file itself."""
    found = []
    for place in map(pathlib.Path, places):
        if place.is_file():
            found.append(place)
        else:
            found += [place / name for name in names if (place / name).is_file()]
    return found


def matches(row, where):
    """`where`: column -> the texts it may have; a column that starts with ! names those it may not."""
    for column, allowed in where.items():
        texts = [str(text) for text in (allowed if isinstance(allowed, list) else [allowed])]
        inside = row.cells.get(column.lstrip("!"), "") in texts
        if inside == column.startswith("!"):
            return False
    return True


def lines(path):
    """Rows of a table as {column: text}, with the columns of their setups (data/measurements/README.md)."""
    path = pathlib.Path(path)
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    if not rows or SETUP_ROW not in rows[0]:
        return rows
    with open(path.parent / "setups" / path.name, newline="", encoding="utf-8") as stream:
        setups = {cells.pop(SETUP_ROW): cells for cells in csv.DictReader(stream)}
    return [row | setups[row.pop(SETUP_ROW)] for row in rows]


def is_unscored(cells):
    """Whether a row of serving has no score: its collector suspects it."""
    return bool(cells.get("unscored")) or cells.get("quality") == "suspect"


def read(paths, families=(), where=None):
    rows = []
    for path in paths:
        for cells in lines(path):
            row = Row(str(path), cells)
            if families and row.family not in families:
                continue
            if "unverified" in cells.get("quality", "") or not matches(row, where or {}):
                continue
            rows.append(row)
    return rows


def release(row):
    """The newest year.month that the source names, as a tuple; () where it names none."""
    found = RELEASE.findall(row.cells.get("source", ""))
    return max((tuple(int(part or 0) for part in one) for one in found), default=())


def newest(rows):
    """Of rows with the same configuration, those of the newest release."""
    best = {}
    for row in rows:
        key = (row.table, tuple(sorted((c, v) for c, v in row.cells.items() if c not in NOT_CONFIGURATION)))
        best.setdefault(key, []).append(row)
    kept = {id(row) for same in best.values() for row in same if release(row) == max(map(release, same))}
    return [row for row in rows if id(row) in kept]


def folds(rows, count):
    """[rows] -> number of the fold that holds the row out. A group is never split; folds are of about equal size, and the
    same for the same groups whatever the order of the rows."""
    sizes = {}
    for row in rows:
        sizes[row.group] = sizes.get(row.group, 0) + 1
    order = sorted(sizes, key=lambda group: hashlib.sha256(group.encode()).hexdigest())
    order.sort(key=lambda group: -sizes[group])
    load, of = [0] * count, {}
    for group in order:
        fold = load.index(min(load))
        of[group] = fold
        load[fold] += sizes[group]
    return [of[row.group] for row in rows]


def write(path, rows):
    """A table of these rows, each with its number as id."""
    header = list(dict.fromkeys(column for _, row in rows for column in row.cells))
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        for number, row in rows:
            writer.writerow([f"r{number}" if column == "id" else row.cells.get(column) or "" for column in header])


def predictions(program, path):
    """The predictions of `orrery validate` for one table, in the order of its rows."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.csv"
        subprocess.run([program, "validate", "--data", path, "--out", out], check=True, capture_output=True)
        with open(out, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))


def held_out(paths):
    """{(table, id): prediction by a fit that had not seen the row's configuration}, of what tools/calibrate wrote of its
    fits."""
    known = {}
    for path in paths:
        with open(path, newline="", encoding="utf-8") as stream:
            for line in csv.DictReader(stream):
                if line["held_out"]:
                    known[line["table"], line["id"]] = float(line["held_out"])
    return known
