import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from calibrate import errors, figures, fit, tables

ENTRY = """# A comment that stays.
name: chip
rate: 300 GB/s
of:
  fp8: 0.5   # by hand
protocols:
  - name: LL
    step: 0.6 us
  - name: Simple
    step: 3.4 us
basis: prior
sources:
  rate, of: "somewhere"
"""

# Predicts latency + size / rate of the catalogue that it is pointed at; the row named "odd" is skipped.
PROGRAM = r'''#!{python}
import csv, os, sys
text = open(os.environ["ORRERY_DATA"] + "/chips/chip.yaml").read()
said = {{line.split(":")[0]: line.split(":")[1].split()[0] for line in text.splitlines() if line[:1].isalpha() and len(line.split(":")[1].split())}}
arguments = sys.argv
files = arguments[arguments.index("--data") + 1:arguments.index("--out")]
with open(arguments[arguments.index("--out") + 1], "w") as out:
    out.write("id,family,measured,predicted,ape,skipped_reason\n")
    for file in files:
        for row in csv.DictReader(open(file)):
            time = float(said["latency"]) + float(row["size"]) / float(said["rate"])
            predicted = "" if row["kind"] == "odd" else time
            out.write(f"{{row['id']}},{{row['family']}},{{row['value']}},{{predicted}},,\n")
'''


class Figures(unittest.TestCase):
    def test_a_figure_is_found_by_its_path(self):
        self.assertEqual(figures.read(ENTRY, "rate"), (300.0, "GB/s"))
        self.assertEqual(figures.read(ENTRY, "of.fp8"), (0.5, ""))
        self.assertEqual(figures.read(ENTRY, "protocols.Simple.step"), (3.4, "us"))
        self.assertEqual(figures.read(ENTRY, "protocols.0.step"), (0.6, "us"))
        with self.assertRaises(figures.Missing):
            figures.read(ENTRY, "of.fp4")

    def test_replacing_a_figure_changes_its_number_only(self):
        changed = figures.replaced(ENTRY, "protocols.Simple.step", 4.56789)
        self.assertEqual(changed, ENTRY.replace("3.4 us", "4.57 us"))
        self.assertEqual(figures.replaced(ENTRY, "of.fp8", 0.25), ENTRY.replace("0.5 ", "0.25 "))
        self.assertEqual(figures.read(figures.replaced(ENTRY, "rate", 1.5e-7), "rate")[0], 1.5e-7)

    def test_a_default_is_written_out_before_it_is_fitted(self):
        text = figures.with_figure(ENTRY, "floor", "2 us")
        self.assertEqual(figures.read(text, "floor"), (2.0, "us"))
        self.assertEqual(figures.with_figure(text, "floor", "9 us"), text)
        self.assertLess(text.index("floor"), text.index("basis"))

    def test_a_source_takes_the_place_of_the_one_before(self):
        text = figures.with_source(ENTRY, "rate", 'so "many" rows')
        self.assertIn('  of: "somewhere"\n', text)
        self.assertIn('  rate: "so \\"many\\" rows"\n', text)
        self.assertEqual(figures.with_source(text, "rate", 'so "many" rows'), text)
        self.assertIn('  rate, of: "so \\"many\\" rows"\n', figures.with_source(text, "of", 'so "many" rows'))

    def test_bounds_take_the_unit_of_the_figure(self):
        self.assertAlmostEqual(figures.in_unit("3 us", "ms"), 0.003)
        self.assertEqual(figures.in_unit(3, "ms"), 3.0)
        with self.assertRaises(ValueError):
            figures.in_unit("3 us", "GB/s")


class Rows(unittest.TestCase):
    def row(self, group, **cells):
        return tables.Row("t.csv", {"family": "f", "config_group": group, **cells})

    def test_folds_never_split_a_group_and_forget_the_order(self):
        rows = [self.row(f"g{i % 7}") for i in range(40)]
        folds = tables.folds(rows, 5)
        of = {}
        for row, fold in zip(rows, folds):
            self.assertEqual(of.setdefault(row.group, fold), fold)
        self.assertEqual(set(folds), set(range(5)))
        self.assertEqual(tables.folds(rows[::-1], 5), folds[::-1])

    def test_the_newest_release_of_a_configuration_stays(self):
        rows = [self.row("a", tp="1", source='"25.11 NeMo"'), self.row("b", tp="1", source='"26.04.01 NeMo"'),
                self.row("c", tp="2", source='"25.02 NeMo"')]
        self.assertEqual([row.group for row in tables.newest(rows)], ["f/b", "f/c"])

    def test_errors_are_those_of_validate(self):
        found = errors.errors([1.1, 0.8, None, 5.0], [1.0, 1.0, 1.0, None])
        self.assertEqual(found.rows, 2)
        self.assertAlmostEqual(found.mean, 0.15)
        self.assertAlmostEqual(found.bias, -0.05)
        self.assertAlmostEqual(found.p90, 0.2)


class Calibrate(unittest.TestCase):
    """latency = 2, rate = 50 made the measurements; the catalogue starts with 5 and 30."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "data/chips").mkdir(parents=True)
        (self.folder / "data/chips/chip.yaml").write_text("name: chip\nlatency: 5 s\nrate: 30 GB/s\nsources:\n  latency, rate: \"a guess\"\n")
        lines = ["id,family,config_group,kind,size,value,quality"]
        for i in range(60):
            size = 10 * 1.2 ** i
            lines.append(f"x{i},made,g{i % 12},{'odd' if i == 7 else ''},{size},{2 + size / 50},read_directly")
        lines.append("y,made,g0,,10,1000,from-memory-unverified")
        (self.folder / "rows.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "spec.json").write_text(json.dumps({
            "tables": ["rows.csv"], "families": ["made"], "parameters": [
                {"file": "chips/chip.yaml", "path": "latency", "low": 0.1, "high": 100},
                {"file": "chips/chip.yaml", "path": "rate", "low": 1, "high": 1000}]}))
        (self.folder / "orrery").write_text(PROGRAM.format(python=sys.executable))
        (self.folder / "orrery").chmod(0o755)

    def run_calibrate(self, *options):
        command = [sys.executable, pathlib.Path(fit.__file__).parent, self.folder / "spec.json", "--program",
                   self.folder / "orrery", "--data", self.folder / "data", "--tables", self.folder, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_it_finds_the_figures_that_made_the_measurements(self):
        self.run_calibrate("--write", "--folds", "0")
        text = (self.folder / "data/chips/chip.yaml").read_text()
        self.assertAlmostEqual(figures.read(text, "latency")[0], 2.0, delta=0.06)
        self.assertAlmostEqual(figures.read(text, "rate")[0], 50.0, delta=1.5)
        self.assertIn('latency, rate: "fitted: tools/calibrate spec, 59 rows of made', text)
        self.assertNotIn("a guess", text)

    def test_without_write_nothing_changes_and_rows_are_held_out(self):
        before = (self.folder / "data/chips/chip.yaml").read_text()
        done = self.run_calibrate("--folds", "3", "--residuals", str(self.folder / "r.csv"))
        self.assertEqual((self.folder / "data/chips/chip.yaml").read_text(), before)
        self.assertIn("59 of 60 rows", done.stderr)
        self.assertRegex(done.stdout, r"made +59 +2 +2 ")
        self.assertEqual(len((self.folder / "r.csv").read_text().splitlines()), 61)


if __name__ == "__main__":
    unittest.main()
