"""The result as Markdown."""

import statistics


def spread(values, digits):
    """The median, and the lowest and highest where there are several."""
    values = sorted(values)
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({values[0]:.{digits}f} to {values[-1]:.{digits}f})"


class Goals:
    """What was measured against what is wanted."""

    def __init__(self):
        self.rows = []

    def add(self, what, values, unit, most=None, digits=1):
        """The median of the values is to be `most` at most; without it there is no goal."""
        goal, verdict = "", ""
        if most is not None:
            is_met = statistics.median(values) <= most
            goal, verdict = f"≤ {most:,} {unit}", "met" if is_met else "**missed**"
        self.rows.append(f"| {what} | {spread(values, digits)} {unit} | {goal} | {verdict} |")

    def table(self):
        head = ["| What | Measured, median (lowest to highest) | Goal | |", "|---|---:|---:|---|"]
        return "\n".join(head + self.rows)
