"""Scatter plots of predicted and measured times as SVG: one square with logarithmic axes for each family."""
import math
from xml.sax.saxutils import escape

SIDE, LEFT, TOP, GAP_X, GAP_Y, COLUMNS = 168, 58, 62, 74, 62, 4
UNITS = ((1e-6, "us"), (1e-3, "ms"), (1.0, "s"), (1e3, "ks"))
OFF = 1.2  # dashed lines


def spelled(seconds):
    for scale, unit in reversed(UNITS):
        if seconds >= scale * 0.999:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-6:.4g} us"


class Panel:
    """Maps the times of one family to a square whose upper left corner is (left, top)."""

    def __init__(self, lines, left, top):
        values = [v for line in lines for v in (line.measured, line.predicted)]
        margin = 0.04 * math.log10(max(values) / min(values)) + 0.06
        self.low, self.high = math.log10(min(values)) - margin, math.log10(max(values)) + margin
        self.left, self.top = left, top

    def x(self, seconds):
        return self.left + (math.log10(seconds) - self.low) / (self.high - self.low) * SIDE

    def y(self, seconds):
        return self.top + SIDE - (math.log10(seconds) - self.low) / (self.high - self.low) * SIDE

    def ticks(self):
        """Powers of ten, with 2 and 5 between them where there are few."""
        inside = [base * 10.0 ** power for power in range(math.floor(self.low), math.ceil(self.high) + 1)
                  for base in ((1,) if self.high - self.low > 1.6 else (1, 2, 5))]
        inside = [tick for tick in inside if self.low <= math.log10(tick) <= self.high]
        return inside[::max(1, math.ceil(len(inside) / 4))]


def grid(panel):
    parts = [f'<rect x="{panel.left}" y="{panel.top}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#bbb"/>']
    for tick in panel.ticks():
        x, y = panel.x(tick), panel.y(tick)
        parts += [f'<path d="M{x:.1f} {panel.top}v{SIDE}M{panel.left} {y:.1f}h{SIDE}" stroke="#ececec"/>',
                  f'<text x="{x:.1f}" y="{panel.top + SIDE + 14}" text-anchor="middle">{spelled(tick)}</text>',
                  f'<text x="{panel.left - 5}" y="{y + 4:.1f}" text-anchor="end">{spelled(tick)}</text>']
    return parts


def diagonal(panel, factor, dashes):
    low, high = 10.0 ** panel.low, 10.0 ** panel.high
    start, end = low * max(1.0, 1.0 / factor), high * min(1.0, 1.0 / factor)
    return (f'<path d="M{panel.x(start):.1f} {panel.y(start * factor):.1f}L{panel.x(end):.1f} '
            f'{panel.y(end * factor):.1f}" stroke="#888"{dashes}/>')


def repeats(lines):
    """{prediction: (least, most) measured} of configurations that were measured more than once."""
    seen = {}
    for line in lines:
        seen.setdefault(f"{line.predicted:.6g}", []).append(line.measured)
    return {key: (min(of), max(of)) for key, of in seen.items() if len(of) > 1}


def points(panel, lines):
    parts = []
    for predicted, (least, most) in repeats(lines).items():
        y = panel.y(float(predicted))
        parts.append(f'<path d="M{panel.x(least):.1f} {y:.1f}H{panel.x(most):.1f}" stroke="#e15759" stroke-width="2" '
                     'stroke-opacity="0.7"/>')
    for line in lines:
        parts.append(f'<circle cx="{panel.x(line.measured):.1f}" cy="{panel.y(line.predicted):.1f}" r="2.2" '
                     'fill="#4269d0" fill-opacity="0.55"/>')
    return parts


def svg(lines, title):
    """`lines`: things with family, measured and predicted (seconds)."""
    families = list(dict.fromkeys(line.family for line in lines))
    body, dashes = [f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>'], ' stroke-dasharray="4 3"'
    for number, family in enumerate(families):
        of = [line for line in lines if line.family == family]
        panel = Panel(of, LEFT + (number % COLUMNS) * (SIDE + GAP_X), TOP + (number // COLUMNS) * (SIDE + GAP_Y))
        name = f"{family} ({len(of)})"
        body += [f'<text x="{panel.left}" y="{panel.top - 7}" font-size="12">{escape(name)}</text>', *grid(panel),
                 diagonal(panel, 1.0, ""), diagonal(panel, OFF, dashes), diagonal(panel, 1 / OFF, dashes),
                 *points(panel, of)]
    columns, rows = min(COLUMNS, len(families)), math.ceil(len(families) / COLUMNS)
    width, height = LEFT + max(columns, 2) * (SIDE + GAP_X) - GAP_X + 24, TOP + rows * (SIDE + GAP_Y) - 16
    body.append(f'<text x="{width - 24}" y="24" text-anchor="end">horizontal: measured, vertical: predicted</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'font-size="10" fill="#222">\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
            + "\n".join(body) + "\n</svg>\n")
