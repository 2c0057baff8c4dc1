"""Fits figures of the catalogue to published measurements, holds some out, reports the errors of the fit.

  python3 tools/calibrate SPEC... --program build/release/orrery [--tables DIR...] [--family NAME...] [--write]

A spec (tools/calibrate/specs/NAME.json; a bare NAME will do) says which figures are free, within what bounds, what they
mean, and which rows determine them; tools/calibrate/README.md has the format. Without --write nothing is changed.
"""
import argparse
import csv
import json
import math
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import errors, figures, fit, program, tables  # noqa: E402

ROWS_PER_FIGURE = 20


def spec_of(name):
    path = pathlib.Path(name)
    if not path.suffix:
        path = ROOT / "tools/calibrate/specs" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def merged(specs):
    """Several specs as one: their figures are fitted together to all of their rows."""
    whole = {"tables": [], "families": [], "weights": {}, "where": {}, "parameters": []}
    for spec in specs:
        for key in ("tables", "families"):
            whole[key] += [one for one in spec.get(key, []) if one not in whole[key]]
        for family in spec.get("families", []):
            whole["where"].setdefault(family, spec.get("where", {}))
        whole["weights"].update(spec.get("weights", {}))
        known = {(one["file"], one["path"]) for one in whole["parameters"]}
        whole["parameters"] += [one for one in spec["parameters"] if (one["file"], one["path"]) not in known]
    whole["newest"] = any(spec.get("newest") for spec in specs)
    return whole


def rows_of(spec, options):
    places = options.tables or [ROOT / "data/measurements"]
    families = [one for one in spec["families"] if not options.family or one in options.family]
    rows = tables.read(tables.files(places, spec["tables"]), families)
    rows = [row for row in rows if tables.matches(row, spec["where"].get(row.family, {}))]
    if spec["newest"]:
        rows = tables.newest(rows)
    for row in rows:
        row.weight = float(spec["weights"].get(row.family, 1.0))
    return rows


def held_out(fitting, use, z, jacobian, options):
    """Predictions of each row by a fit that has not seen its group, and the fold of each."""
    fold_of = tables.folds([fitting.program.rows[i] for i in use], options.folds)
    predicted = [None] * len(fitting.program.rows)
    for fold in range(options.folds):
        kept = [i for i, of in zip(use, fold_of) if of != fold]
        place = fitting.run(kept, z, steps=options.fold_steps, jacobian=jacobian)
        there = fitting.program.predicted(fitting.values(place))
        for i, of in zip(use, fold_of):
            if of == fold:
                predicted[i] = there[i]
        print(f"  fold {fold + 1} of {options.folds}: {len(use) - len(kept)} rows held out", file=sys.stderr)
    return predicted, dict(zip(use, fold_of))


def moving(jacobian, rows, use, family):
    """Figures that some prediction of the family depends on."""
    of = [i for i in use if not family or rows[i].family == family]
    return sum(1 for column in jacobian if any(abs(column[i]) > 1e-6 for i in of))


def percent(fraction):
    return f"{100 * fraction:.1f} %"


def print_table(header, lines):
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, *lines]:
        print("  ".join([line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]).rstrip())
    print()


def print_errors(run, use, jacobian, before, after, out):
    """Errors of every family of the rows; `!`: more figures than its rows can determine. Returns these families."""
    rows, lines, over = run.rows, [], []
    start, inside = (errors.by_family(rows, p, run.measured) for p in (before, after))
    outside = errors.by_family(rows, out, run.measured) if out else {}
    for family, there in inside.items():
        count, most = moving(jacobian, rows, use, family), there.rows // ROWS_PER_FIGURE
        held = outside.get(family)
        if count > most:
            over.append(family or "all")
        lines.append([family or "all", str(there.rows), f"{count}{' !' if count > most else ''}", str(most),
                      percent(start[family].mean), percent(there.mean), percent(held.mean) if held else "-",
                      percent(start[family].median), percent(there.median), percent(held.median) if held else "-",
                      percent((held or there).p90), f"{100 * (held or there).bias:+.1f} %"])
    print_table(["family", "rows", "figures", "at most", "mean before", "in sample", "held out", "median before",
                 "in sample", "held out", "p90", "bias"], lines)
    return over


def print_figures(fitting, z, square):
    """Spread: the change of a figure, relative to its range, that changes the objective by one."""
    lines = []
    for j, parameter in enumerate(fitting.parameters):
        loose = 1.0 / math.sqrt(square[j][j]) if square[j][j] > 0 else 9.0
        lines.append([parameter.name, figures.spelled(parameter.start, parameter.unit),
                      figures.spelled(fit.value_of(parameter, z[j]), parameter.unit), figures.spelled(parameter.low, ""),
                      figures.spelled(parameter.high, ""), f"{min(loose, 9.0):.3f}",
                      "at bound" if z[j] <= 0.001 or z[j] >= 0.999 else ""])
    print_table(["figure", "before", "fitted", "low", "high", "spread", ""], lines)


def citation_of(options, run, use, inside, out):
    families = ", ".join(sorted({run.rows[i].family for i in use}))
    names = " ".join(pathlib.Path(spec).stem for spec in options.spec)
    held = f", {percent(out.mean)} on configurations held out ({options.folds} folds)" if out else ""
    return (f"fitted: tools/calibrate {names}, {len(use)} rows of {families}, 2026-11; mean error "
            f"{percent(inside.mean)}{held}")


def write_figures(fitting, z, citation, data):
    for parameter, x in zip(fitting.parameters, z):
        for file, path in parameter.places:
            text = parameter.text_in((data / file).read_text(encoding="utf-8"), path, fit.value_of(parameter, x))
            (data / file).write_text(figures.with_source(text, path, citation), encoding="utf-8")


def write_residuals(path, run, fold_of, after, out):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "family", "config_group", "table", "measured", "in_sample", "held_out", "fold"])
        for i, row in enumerate(run.rows):
            writer.writerow([row.cells.get("id", ""), row.family, row.group, pathlib.Path(row.table).name,
                             run.measured[i], after[i], out[i] if out else "", fold_of.get(i, "")])


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="tools/calibrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="+", help="name or file of a spec; several are fitted together")
    parser.add_argument("--program", default=str(ROOT / "build/release/orrery"))
    parser.add_argument("--data", default=str(ROOT / "data"), help="catalogue that is read, and written with --write")
    parser.add_argument("--tables", nargs="+", default=[],
                        help="folders or files of measurements (default: data/measurements)")
    parser.add_argument("--family", nargs="+", default=[], help="only rows of these families")
    parser.add_argument("--folds", type=int, default=5, help="0: nothing is held out")
    parser.add_argument("--steps", type=int, default=fit.MOST_STEPS)
    parser.add_argument("--fold-steps", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--residuals", help="csv of every row's prediction, in sample and held out")
    parser.add_argument("--write", action="store_true", help="write the figures and their provenance into --data")
    return parser.parse_args(arguments)


def rounded(parameters, z):
    """The place of the figures as they are written."""
    return [fit.place_of(p, float(f"{fit.value_of(p, x):.3g}")) for p, x in zip(parameters, z)]


def main(arguments):
    options = options_of(arguments)
    spec, data = merged([spec_of(name) for name in options.spec]), pathlib.Path(options.data)
    parameters = [program.Parameter(one, data) for one in spec["parameters"]]
    run = program.Program(options.program, data, parameters, rows_of(spec, options))
    fitting = fit.Fit(run, options.workers)
    before = run.predicted(fitting.values(fitting.start))
    use = [i for i, r in enumerate(fitting.residuals(fitting.start)) if r is not None]
    if not use:
        sys.exit("no row of the spec's families is both measured and predicted")
    print(f"{len(use)} of {len(run.rows)} rows, {len(parameters)} figures", file=sys.stderr)
    z = fitting.run(use, steps=options.steps, progress=lambda n, o: print(f"  step {n}: {o:.5g}", file=sys.stderr))
    z = rounded(parameters, z)
    residuals, after = fitting.residuals(z), run.predicted(fitting.values(z))
    jacobian = fitting.jacobian(z, residuals)
    out, fold_of = held_out(fitting, use, z, jacobian, options) if options.folds > 1 else (None, {})
    square, _ = fitting.normal(z, residuals, jacobian, use)
    print_figures(fitting, z, square)
    over = print_errors(run, use, jacobian, before, after, out)
    print(f"{run.runs} runs of the program", file=sys.stderr)
    if options.residuals:
        write_residuals(options.residuals, run, fold_of, after, out)
    if options.write:
        if over:
            sys.exit(f"nothing written: more than a figure for {ROWS_PER_FIGURE} rows of {', '.join(over)}")
        held = errors.errors(out, run.measured) if out else None
        write_figures(fitting, z, citation_of(options, run, use, errors.errors(after, run.measured), held), data)


if __name__ == "__main__":
    main(sys.argv[1:])
