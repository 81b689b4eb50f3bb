#!/usr/bin/env python3
"""Reads the JSON of bloomline_bench: ratios to the limits with verdicts, and the plot of cost against filter size.

  tools/bench_report.py RESULT.json [MORE.json...]          prints the table of ratios
  tools/bench_report.py --plot OUT.svg RESULT.json [...]    draws the /sweep rows

Of repetitions (in one file or several) the fastest counts: on a shared machine, noise only ever adds time. The limit of
a row is limit/hash_touch of its size, on the same filter's pages (/on:LAYOUT) where that was measured.
Python's standard library is all that is needed. Exit status of the table: 1 where a bound is missed; stretch goals only
warn.
"""

import argparse
import json
import math
import re
import sys
from xml.sax.saxutils import escape

# (operation/layout, size, the most it may cost relative to limit/hash_touch of that size, stretch goal)
BOUNDS = [
    ("lookup_batch/word64k5", "1MiB", 1.15, False),
    ("lookup_batch/word64k5", "512MiB", 1.05, False),
    ("lookup_batch/split512", "1MiB", 1.5, False),
    ("lookup_batch/split512", "512MiB", 1.05, False),
    ("lookup_batch/split256", "1MiB", 1.6, False),
    ("lookup_batch/split256", "512MiB", 1.1, False),
    ("lookup_batch/sector512z2k6", "1MiB", 1.8, False),
    ("lookup_batch/sector512z2k6", "512MiB", 1.1, False),
    ("lookup_batch/line512k7", "1MiB", 1.9, False),
    ("lookup_batch/line512k7", "512MiB", 1.1, False),
    ("lookup_one/split512", "1MiB", 2.9, True),
    ("insert_batch/split512", "1MiB", 1.9, False),
    ("insert_batch/split512", "512MiB", 1.15, False),
    ("build/split512", "512MiB", 0.85, True),
    ("count_lookup/counting4", "1MiB", 1.7, False),
    ("count_add/counting4", "1MiB", 3.5, True),
    ("count_remove/counting4", "1MiB", 3.5, True),
    # These two against limit/hash_rmw.
    ("count_add/counting4", "512MiB", 1.2, False),
    ("count_remove/counting4", "512MiB", 1.2, False),
]
# The same on a forced target.
TARGET_BOUNDS = {("lookup_batch/split512", "1MiB", "AVX2"): 2.4}

SIZE = re.compile(r"^(\d+)(KiB|MiB|GiB)$")
UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def size_bytes(name):
    match = SIZE.match(name)
    return int(match[1]) * UNIT[match[2]] if match else None


def size_name(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size % UNIT[unit] == 0:
            return f"{size // UNIT[unit]}{unit}"
    return f"{size}B"


def fail(message):
    print(f"bench_report.py: {message}", file=sys.stderr)
    sys.exit(2)


class Results:
    """ns per key by row name: the minimum over repetitions and files."""

    def __init__(self, files):
        self.ns = {}
        self.errors = {}
        self.context = None
        for file in files:
            try:
                with open(file, encoding="utf-8") as stream:
                    data = json.load(stream)
                rows, context = data["benchmarks"], data["context"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                fail(f"{file}: not the JSON of a benchmark run: {error}")
            if self.context is None:
                self.context = context
            elif context.get("target") != self.context.get("target"):
                fail(f"{file}: measured on target {context.get('target')}, others on {self.context.get('target')}")
            for row in rows:
                self.add(row)

    def add(self, row):
        if row.get("run_type") == "aggregate" and row.get("aggregate_name") != "median":
            return
        name = row.get("run_name", row["name"])
        if row.get("error_occurred"):
            self.errors[name] = row.get("error_message", "failed")
            return
        if not row.get("items_per_second"):
            return
        ns = 1e9 / row["items_per_second"]
        # Files written with --benchmark_report_aggregates_only have the median only; where there are single
        # repetitions it is never below their minimum.
        self.ns[name] = min(ns, self.ns.get(name, math.inf))


def bound_rows(results):
    """(row, ns, limit's ns, bound, stretch) of all rows with a bound, or None in place of what was not measured."""
    forced = results.context.get("target", "")
    for prefix, size, bound, stretch in BOUNDS:
        row = f"{prefix}/{size}"
        if forced == "AVX2":
            bound = TARGET_BOUNDS.get((prefix, size, forced))
            if bound is None:
                continue
        stores = prefix.startswith(("count_add", "count_remove")) and size == "512MiB"
        limit = f"limit/hash_{'rmw' if stores else 'touch'}/{size}"
        on_same_pages = f"{limit}/on:{prefix.split('/')[1]}"
        yield row, results.ns.get(row), results.ns.get(on_same_pages, results.ns.get(limit)), bound, stretch
    for (prefix, size, target), bound in TARGET_BOUNDS.items():
        detail = f"/target:{target}"
        row = f"{prefix}/{size}{detail}"
        if row in results.ns:
            yield row, results.ns[row], results.ns.get(f"limit/hash_touch/{size}{detail}"), bound, False
    # Strings: hashing them and looking up as many u64 keys, together.
    for size in ("32KiB", "1MiB", "16MiB"):
        row = f"lookup_batch/split512/{size}/strings"
        parts = (results.ns.get("limit/xxh3/strings"), results.ns.get(f"lookup_batch/split512/{size}"))
        if row in results.ns and None not in parts:
            yield row, results.ns[row], sum(parts), 1.25, False


def thread_rows(results):
    """(row, ratio of throughputs) of two threads to one."""
    for name, ns in results.ns.items():
        if name.endswith("/real_time/threads:2"):
            single = results.ns.get(name[:-1] + "1")
            if single is not None:
                yield name, single / ns


def print_table(results):
    context = results.context
    print(f"{context.get('cpu', 'unknown CPU')}, target {context.get('target', 'unknown')}, "
          f"{context.get('compiler', 'unknown compiler')}, load {context.get('load_avg', 'unknown')}")
    print(f"{'benchmark':<46}{'ns/key':>9}{'limit':>9}{'ratio':>8}{'bound':>8}  verdict")
    missed = False
    for row, ns, limit, bound, stretch in bound_rows(results):
        if ns is None or limit is None:
            reason = results.errors.get(row, "not measured" if ns is None else "its limit was not measured")
            print(f"{row:<46}{'':>9}{'':>9}{'':>8}{bound:>8.2f}  {reason}")
            continue
        ratio = ns / limit
        kept = ratio <= bound
        verdict = "ok" if kept else "over (stretch goal)" if stretch else "OVER"
        missed = missed or not (kept or stretch)
        print(f"{row:<46}{ns:>9.3f}{limit:>9.3f}{ratio:>8.3f}{bound:>8.2f}  {verdict}")
    for row, speedup in thread_rows(results):
        kept = speedup >= 1.9
        missed = missed or not kept
        print(f"{row:<46}{'':>9}{'':>9}{speedup:>7.2f}x{'1.90':>8}  {'ok' if kept else 'UNDER'}")
    for row, message in results.errors.items():
        print(f"failed: {row}: {message}")
    return 1 if missed or results.errors else 0


# ---- The plot: one file of SVG, no fonts or scripts from elsewhere.

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 165, 62, 84
# Distinct in hue and in lightness (after Okabe and Ito 2008), and dashed differently for print.
STYLES = {
    "limit": ("#555555", "6 4", "limit: load one line"),
    "word64k5": ("#0072b2", "", "word64, k = 5"),
    "split512": ("#d55e00", "", "split512"),
    "sector512z2k6": ("#009e73", "", "sector512z2, k = 6"),
    "line512k7": ("#cc79a7", "", "line512, k = 7"),
}


def sweep_series(results):
    series = {}
    for name, ns in results.ns.items():
        parts = name.split("/")
        if parts[-1] != "sweep" or len(parts) != 4:
            continue
        size = size_bytes(parts[2])
        key = "limit" if parts[:2] == ["limit", "hash_touch"] else parts[1] if parts[0] == "lookup_batch" else None
        if key in STYLES and size is not None:
            series.setdefault(key, []).append((size, ns))
    return {key: sorted(series[key]) for key in STYLES if key in series}


def ticks(top):
    """Round values for a logarithmic axis from below 1 up to `top`."""
    values = [base * 10**power for power in (-1, 0, 1, 2) for base in (1, 2, 5)]
    return [value for value in values if value <= top * 1.0001]


class Svg:
    def __init__(self):
        self.parts = []

    def line(self, x1, y1, x2, y2, colour, width=1.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"{dashes}/>')

    def text(self, x, y, text, size=13, anchor="middle", colour="#222222", extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
                          f'fill="{colour}"{extra}>{escape(text)}</text>')

    def path(self, points, colour, dash):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2.2" '
                          f'stroke-linejoin="round"{dashes}/>')
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>')

    def document(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                f'height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">\n'
                f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n')


def spread(wanted, gap, low, high):
    """Positions as near to `wanted` (ascending) as labels `gap` apart allow, within low … high."""
    placed = []
    for position in wanted:
        placed.append(max(position, placed[-1] + gap) if placed else max(position, low))
    overhang = placed[-1] - high
    for i in range(len(placed) - 1, -1, -1):
        if overhang <= 0:
            break
        placed[i] -= overhang
        overhang = (placed[i - 1] + gap - placed[i]) if i > 0 else 0
    return placed


def plot(results, command):
    series = sweep_series(results)
    if not any(len(points) > 1 for points in series.values()):
        fail("no /sweep rows in the input; measure them with bloomline_bench --benchmark_filter='/sweep'")
    sizes = sorted({size for points in series.values() for size, _ in points})
    costs = [ns for points in series.values() for _, ns in points]
    x_low, x_high = math.log2(sizes[0]), math.log2(sizes[-1])
    bottom = max(value for value in ticks(1e3) if value <= min(costs))
    top = max(costs) * 1.15
    def x_of(size):
        return LEFT + (math.log2(size) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)
    def y_of(ns):
        return HEIGHT - BOTTOM - math.log(ns / bottom) / math.log(top / bottom) * (HEIGHT - TOP - BOTTOM)

    svg = Svg()
    context = results.context
    svg.text(LEFT, 24, "Cost of a lookup against the size of the filter", 17, "start", extra=' font-weight="bold"')
    svg.text(LEFT, 43, f"{context.get('cpu', 'unknown CPU')}, {context.get('target', '?')}, one thread, "
             "10 bits per key, half of the lookups members; lower is better", 12, "start", "#555555")
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in ticks(top):
        if value >= bottom:
            svg.line(LEFT, y_of(value), right, y_of(value), "#e4e4e4")
            svg.text(LEFT - 8, y_of(value) + 4, f"{value:g}", anchor="end")
    for i, size in enumerate(sizes):
        svg.line(x_of(size), base, x_of(size), base + 5, "#222222")
        if i % 2 == 1 or len(sizes) < 9:
            svg.text(x_of(size), base + 20, size_name(size), 12)
    for level, key in (("L1", "l1d_bytes"), ("L2", "l2_bytes"), ("L3", "l3_bytes")):
        size = int(context.get(key, "0") or 0)
        if sizes[0] <= size <= sizes[-1]:
            svg.line(x_of(size), TOP, x_of(size), base, "#888888", 1.2, "2 4")
            label = f"{level} {size_name(size)}"
            near_right = x_of(size) > right - 80
            svg.text(x_of(size) + (-5 if near_right else 5), TOP + 12, label, 12, "end" if near_right else "start",
                     "#555555")
    svg.line(LEFT, base, right, base, "#222222")
    svg.line(LEFT, TOP, LEFT, base, "#222222")
    svg.text((LEFT + right) / 2, base + 42, "memory of the filter (logarithmic)")
    middle = (TOP + base) / 2
    svg.text(22, middle, "ns per key (logarithmic)", extra=f' transform="rotate(-90 22 {middle:.1f})"')
    svg.text(LEFT, HEIGHT - 12, "Dotted: data caches as the system reports them. Points: fastest repetition. Drawn by "
             + command, 11, "start", "#555555")

    for key, points in series.items():
        svg.path([(x_of(size), y_of(ns)) for size, ns in points], STYLES[key][0], STYLES[key][1])
    # The legend stands at the lines' ends, in their order.
    ends = sorted((y_of(points[-1][1]), key) for key, points in series.items())
    places = spread([y for y, _ in ends], 20, TOP, base - 10)
    for (y, key), place in zip(ends, places):
        colour, dash, label = STYLES[key]
        svg.line(right + 4, y, right + 18, place, colour, 0.8)
        svg.line(right + 18, place, right + 40, place, colour, 2.2, dash)
        svg.text(right + 45, place + 4, label, 12, "start", colour)
    return svg.document()


def main():
    parser = argparse.ArgumentParser(description="Ratios to the limits, or the plot of cost against filter size.")
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    parser.add_argument("--plot", metavar="OUT.svg", help="draw the /sweep rows instead of printing the table")
    parser.add_argument("--command", default="tools/bench_sizes.sh", help="what the plot names as its origin")
    arguments = parser.parse_args()
    results = Results(arguments.results)
    if arguments.plot is None:
        sys.exit(print_table(results))
    document = plot(results, arguments.command)
    try:
        with open(arguments.plot, "w", encoding="utf-8") as stream:
            stream.write(document)
    except OSError as error:
        fail(f"{arguments.plot}: {error.strerror}")


if __name__ == "__main__":
    main()
