"""Predictions of `orrery validate` with other figures in the catalogue."""
import collections
import csv
import os
import pathlib
import subprocess
import tempfile

from calibrate import figures, tables


class Parameter:
    """A figure that is fitted, and the others that have the same value."""

    def __init__(self, said, data):
        self.file, self.path = said["file"], said["path"]
        self.meaning = said.get("meaning", "")
        self.name = said.get("name", f"{self.file.removesuffix('.yaml')}:{self.path}")
        self.log = said.get("scale", "log") == "log"
        self.places = [(self.file, self.path)] + [(one["file"], one.get("path", self.path)) for one in said.get("also", [])]
        self.default = said.get("default")
        text = (data / self.file).read_text(encoding="utf-8")
        if self.default is not None:
            text = figures.with_figure(text, self.path, self.default)
        self.start, self.unit = figures.read(text, self.path)
        self.low = figures.in_unit(said["low"], self.unit)
        self.high = figures.in_unit(said["high"], self.unit)
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"{self.name}: bounds {said['low']} to {said['high']}")
        self.prior = said.get("prior_spread")  # one standard deviation: a factor (log) or a difference

    def text_in(self, text, path, value):
        if self.default is not None:
            text = figures.with_figure(text, path, self.default)
        return figures.replaced(text, path, value)


class Program:
    """Runs of the program on a fixed set of rows."""

    def __init__(self, program, data, parameters, rows):
        self.program, self.data, self.parameters = pathlib.Path(program).resolve(), pathlib.Path(data).resolve(), parameters
        self.scratch = tempfile.TemporaryDirectory()
        self.rows, self.seen, self.runs = rows, {}, 0
        self.files = []
        by_table = collections.defaultdict(list)
        for number, row in enumerate(rows):
            by_table[row.table].append((number, row))
        for number, (table, of_table) in enumerate(sorted(by_table.items())):
            path = pathlib.Path(self.scratch.name) / f"{number}-{pathlib.Path(table).name}"
            tables.write(path, of_table)
            beside = pathlib.Path(table).resolve().with_suffix("")  # what commands name as @file
            if beside.is_dir():
                path.with_suffix("").symlink_to(beside)
            self.files.append(str(path))
        self.measured = self.run(None, "measured")

    def catalogue(self, values, folder):
        """The data directory with other values, everything else linked."""
        texts = {}
        for parameter, value in zip(self.parameters, values):
            for file, path in parameter.places:
                text = texts.get(file) or (self.data / file).read_text(encoding="utf-8")
                texts[file] = parameter.text_in(text, path, value)
        changed = collections.defaultdict(set)
        for file in texts:
            changed[pathlib.Path(file).parent.as_posix()].add(pathlib.Path(file).name)
        for entry in self.data.iterdir():
            if entry.name in changed:
                (folder / entry.name).mkdir()
                for inner in entry.iterdir():
                    if inner.name not in changed[entry.name]:
                        (folder / entry.name / inner.name).symlink_to(inner)
            else:
                (folder / entry.name).symlink_to(entry)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")

    def run(self, values, column):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            data = self.data
            if values is not None:
                data = folder / "data"
                data.mkdir()
                self.catalogue(values, data)
            out = folder / "out.csv"
            done = subprocess.run([self.program, "validate", "--data", *self.files, "--out", out], check=False,
                                  env=dict(os.environ, ORRERY_DATA=str(data)), capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(map(str, done.args))}\n{done.stderr}")
            self.runs += 1
            result = [None] * len(self.rows)
            with open(out, newline="", encoding="utf-8") as stream:
                for line in csv.DictReader(stream):
                    text = line[column]
                    result[int(line["id"][1:])] = float(text) if text else None
            return result

    def predicted(self, values):
        """[rows]: the time in seconds, None where the row is skipped."""
        key = tuple(values)
        if key not in self.seen:
            self.seen[key] = self.run(key, "predicted")
        return self.seen[key]
