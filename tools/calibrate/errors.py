"""Errors of predictions, per family."""
import collections
import math

Errors = collections.namedtuple("Errors", "rows mean median p90 bias")


def median(ordered):
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def errors(predicted, measured):
    """Of the rows that have both; None where there is none. (p - m) / m, as `orrery validate` has it."""
    signed = [(p - m) / m for p, m in zip(predicted, measured) if p and m]
    if not signed:
        return None
    sizes = sorted(map(abs, signed))
    n = len(signed)
    return Errors(n, sum(sizes) / n, median(sizes), sizes[math.ceil(0.9 * n) - 1], sum(signed) / n)


def by_family(rows, predicted, measured):
    """{family: Errors}, in the order of the rows; all of them together under ''."""
    groups = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.family, []).append(i)
    groups[""] = list(range(len(rows)))
    out = {family: errors([predicted[i] for i in of], [measured[i] for i in of]) for family, of in groups.items()}
    return {family: found for family, found in out.items() if found}
