"""Bounded least squares on the logarithm of predicted / measured.

Minimises sum_i w_i rho(r_i) + sum_j ((z_j - start_j) / spread_j)^2 over z in [0, 1]^n, where z is the place of a figure
between its bounds (on a logarithmic scale unless the spec says linear), r_i = ln(predicted_i / measured_i), and rho is
Huber's: squares up to `HUBER`, linear beyond, so that single odd rows do not lead. Solved by Levenberg and Marquardt with
derivatives from differences; a figure that sits on a bound and wants beyond it is held there for the step.
"""
import concurrent.futures
import math

HUBER = 0.25
DIFFERENCE = 0.01  # of z, in derivatives: large, because predictions have kinks
RIDGE = 0.02       # weight of staying where the figure was, for figures that no row determines
MOST_STEPS = 15
ENOUGH = 2e-4      # of the objective, relative


def value_of(parameter, z):
    if parameter.log:
        return math.exp(math.log(parameter.low) + z * math.log(parameter.high / parameter.low))
    return parameter.low + z * (parameter.high - parameter.low)


def place_of(parameter, value):
    value = min(max(value, parameter.low), parameter.high)
    if parameter.log:
        return math.log(value / parameter.low) / math.log(parameter.high / parameter.low)
    return (value - parameter.low) / (parameter.high - parameter.low)


def spread_of(parameter):
    """Of the prior, in z; None without one."""
    if not parameter.prior:
        return None
    if parameter.log:
        return math.log(parameter.prior) / math.log(parameter.high / parameter.low)
    return parameter.prior / (parameter.high - parameter.low)


def solved(matrix, right):
    """Gauss elimination with pivots."""
    n = len(right)
    a = [row[:] + [b] for row, b in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(a[r][i]))
        if abs(a[pivot][i]) < 1e-14:
            continue
        a[i], a[pivot] = a[pivot], a[i]
        for r in range(n):
            if r != i and a[r][i]:
                factor = a[r][i] / a[i][i]
                for c in range(i, n + 1):
                    a[r][c] -= factor * a[i][c]
    return [a[i][n] / a[i][i] if abs(a[i][i]) > 1e-14 else 0.0 for i in range(n)]


class Fit:
    def __init__(self, program, workers=2):
        self.program, self.parameters, self.workers = program, program.parameters, workers
        self.start = [place_of(p, p.start) for p in self.parameters]
        self.anchors = [(i, z, spread_of(p)) for i, (p, z) in enumerate(zip(self.parameters, self.start))]

    def values(self, z):
        return [float(f"{value_of(p, x):.6g}") for p, x in zip(self.parameters, z)]

    def residuals(self, z):
        """[rows]: ln(predicted / measured), None where either is missing."""
        return [math.log(p / m) if p and m else None
                for p, m in zip(self.program.predicted(self.values(z)), self.program.measured)]

    def pulls(self, z):
        """(parameter, distance from where it started over its spread, 1 / spread)."""
        ridge = math.sqrt(RIDGE)
        return [(i, (z[i] - start) / spread if spread else ridge * (z[i] - start), 1 / spread if spread else ridge)
                for i, start, spread in self.anchors]

    def objective(self, z, residuals, use):
        total = sum(pull * pull for _, pull, _ in self.pulls(z))
        for i in use:
            r = residuals[i]
            if r is not None:
                size = abs(r)
                total += self.program.rows[i].weight * (r * r if size <= HUBER else HUBER * (2 * size - HUBER))
        return total

    def jacobian(self, z, residuals):
        """[parameter][row]: d residual / d z."""
        def column(j):
            step = DIFFERENCE if z[j] + DIFFERENCE <= 1 else -DIFFERENCE
            moved = z[:]
            moved[j] += step
            return [(b - a) / step if a is not None and b is not None else 0.0
                    for a, b in zip(residuals, self.residuals(moved))]
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(column, range(len(z))))

    def normal(self, z, residuals, jacobian, use):
        """J^T W J and J^T W r, with Huber's weights and the pulls."""
        n = len(z)
        weights = {i: self.program.rows[i].weight * min(1.0, HUBER / max(abs(residuals[i]), 1e-12))
                   for i in use if residuals[i] is not None}
        square = [[sum(w * jacobian[a][i] * jacobian[b][i] for i, w in weights.items()) if b >= a else 0.0
                   for b in range(n)] for a in range(n)]
        for a in range(n):
            for b in range(a):
                square[a][b] = square[b][a]
        slope = [sum(w * jacobian[a][i] * residuals[i] for i, w in weights.items()) for a in range(n)]
        for i, pull, stiffness in self.pulls(z):
            square[i][i] += stiffness * stiffness
            slope[i] += pull * stiffness
        return square, slope

    def step(self, z, square, slope, damping):
        """Where Levenberg and Marquardt would go, inside the bounds."""
        free = [j for j in range(len(z)) if not (z[j] <= 0 and slope[j] > 0) and not (z[j] >= 1 and slope[j] < 0)]
        small = [[square[a][b] + (damping * square[a][a] + 1e-12 if a == b else 0.0) for b in free] for a in free]
        move = solved(small, [-slope[a] for a in free])
        out = z[:]
        for j, by in zip(free, move):
            out[j] = min(1.0, max(0.0, z[j] + by))
        return out

    def run(self, use, z=None, steps=MOST_STEPS, jacobian=None, progress=None, enough=ENOUGH):
        """The best place found on the rows `use`. `jacobian`: that of the start, where it is known."""
        z = list(z or self.start)
        residuals = self.residuals(z)
        best, damping = self.objective(z, residuals, use), 1e-2
        for number in range(steps):
            square, slope = self.normal(z, residuals, jacobian or self.jacobian(z, residuals), use)
            jacobian, before = None, best
            while damping < 1e4:
                tried = self.step(z, square, slope, damping)
                there = self.residuals(tried)
                value = self.objective(tried, there, use)
                if value < best:
                    z, residuals, best, damping = tried, there, value, damping / 5
                    break
                damping *= 4
            if progress:
                progress(number + 1, best)
            if before - best <= enough * before:
                break
        return z
