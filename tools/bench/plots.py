"""The plots of BENCHMARKS.md, as SVG, by matplotlib. Each function returns whether there was something to draw."""

import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: E402

from view import BASELINES, COUNTING_LAYOUTS, LAYOUTS, SIZES, size_bytes, size_name, skyline, spaced  # noqa: E402

# The same input gives the same file: no date, and names of elements that do not change.
matplotlib.rcParams.update({"svg.hashsalt": "bloomline", "svg.fonttype": "none", "font.family": "sans-serif",
                            "font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False,
                            "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlesize": 13,
                            "axes.titlepad": 24})

# Distinct in hue and in lightness (after Okabe and Ito 2008), and by marker for print.
COLOURS = {"split512": "#d55e00", "word64": "#0072b2", "split256": "#56b4e9", "sector512z1": "#8a8a00",
           "sector512z2": "#009e73", "sector512z4": "#e69f00", "sector512z8": "#7b4ab5", "line512": "#cc79a7",
           "counting4": "#8c564b", "counting8": "#7f7f7f"}
MARKERS = {"split512": "o", "word64": "s", "split256": "D", "sector512z1": "<", "sector512z2": "^", "sector512z4": "v",
           "sector512z8": ">", "line512": "P", "counting4": "X", "counting8": "*"}
LIMIT = "#555555"
GRID = "#e2e2e2"


def family(layout):
    """'line512k7' is of line512."""
    return next((name for name in sorted(COLOURS, key=len, reverse=True) if layout.startswith(name)), layout)


def label_of(layout):
    name = family(layout)
    return f"{name}, k = {layout[len(name) + 1:]}" if layout.startswith(name + "k") else layout


def new_figure(title, view, subtitle, width=8.6, height=4.9):
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set_title(title)
    axes.text(0, 1.025, f"{view.context.get('cpu', 'unknown CPU')}, {view.target}; {subtitle}", transform=axes.transAxes,
              fontsize=9.5, color="#555555")
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def save(figure, path):
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "tools/bench.sh"})
    plt.close(figure)
    # matplotlib ends lines with blanks.
    with open(path, encoding="utf-8") as stream:
        text = "\n".join(line.rstrip() for line in stream.read().splitlines()) + "\n"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return True


def log_ticks(axis):
    """At 1, 2, 5 and their powers of ten."""
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def spread(wanted, gap):
    """Positions (ascending) as near to `wanted` as labels `gap` apart allow."""
    placed = []
    for position in wanted:
        placed.append(max(position, placed[-1] + gap) if placed else position)
    shift = (placed[-1] - wanted[-1]) / 2 if placed else 0
    return [position - shift for position in placed]


def label_ends(axes, ends):
    """The legend stands at the lines' ends: (y, text, colour) each, in their order, on a logarithmic axis."""
    ends = sorted(ends)
    low, high = axes.get_ylim()
    gap = math.log(high / low) * 0.052
    for (y, text, colour), place in zip(ends, spread([math.log(y) for y, _, _ in ends], gap)):
        axes.annotate(text, xy=(1, y), xycoords=("axes fraction", "data"), xytext=(1.035, math.exp(place)),
                      textcoords=("axes fraction", "data"), color=colour, va="center", fontsize=10,
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 0,
                                  "shrinkB": 1})


def draw_caches(axes, view, low, high):
    for name, key in (("L1", "l1d_bytes"), ("L2", "l2_bytes"), ("L3", "l3_bytes")):
        text = view.context.get(key, "0")
        size = int(text) if text.isdigit() else 0
        if low <= size <= high:
            axes.axvline(size, color="#888888", linewidth=1.1, linestyle=(0, (2, 2)), zorder=1)
            at_right = size > high / 8
            axes.annotate(f"{name} {size_name(size)}", (size, 0.985), xycoords=axes.get_xaxis_transform(),
                          xytext=(-4 if at_right else 4, 0), textcoords="offset points", fontsize=9, color="#555555",
                          va="top", ha="right" if at_right else "left")


def lookup_by_size(view, path):
    series = {}
    for row, ns in view.ns.items():
        parts = row.split("/")
        if parts[-1] == "sweep" and len(parts) == 4 and size_bytes(parts[2]):
            key = "limit" if parts[0] == "limit" else parts[1]
            series.setdefault(key, []).append((size_bytes(parts[2]), ns))
    if not any(len(points) > 1 for points in series.values()):
        return False
    figure, axes = new_figure("Cost of a lookup against the size of the filter", view,
                              "one thread, batches, 10 bits per key, half of the keys are members")
    sizes = sorted({size for points in series.values() for size, _ in points})
    costs = [ns for points in series.values() for _, ns in points]
    ends = []
    for layout in ["limit"] + LAYOUTS:
        if layout not in series:
            continue
        xs, ys = zip(*sorted(series[layout]))
        if layout == "limit":
            axes.plot(xs, ys, color=LIMIT, linewidth=1.6, linestyle=(0, (5, 3)), marker=".", markersize=5)
            ends.append((ys[-1], "limit: load one line", LIMIT))
        else:
            axes.plot(xs, ys, color=COLOURS[family(layout)], linewidth=2, marker=MARKERS[family(layout)], markersize=4.5)
            ends.append((ys[-1], label_of(layout), COLOURS[family(layout)]))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
    axes.set_ylim(min(costs) / 1.25, max(costs) * 1.3)
    axes.set_xticks(sizes[::2] if len(sizes) > 9 else sizes)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_name(round(value))))
    axes.xaxis.set_minor_locator(NullLocator())
    log_ticks(axes.yaxis)
    draw_caches(axes, view, sizes[0], sizes[-1])
    axes.set_xlabel("memory of the filter (logarithmic; dotted: data caches as the system reports them)")
    axes.set_ylabel("ns per key (logarithmic), lower is better")
    label_ends(axes, ends)
    return save(figure, path)


def fpr_against_cost(view, path):
    points = view.points()
    if len(points) < 2:
        return False
    figure, axes = new_figure("False positives against the cost of a lookup", view,
                              "1 MiB, 10 bits per key; lower and further left is better", height=5.4)
    best = skyline(points)
    axes.step([ns for _, ns, _ in best], [100 * fpr for _, _, fpr in best], where="post", color="#222222", linewidth=1.1,
              zorder=2, label="best of bloomline")
    for name in COLOURS:
        mine = [(ns, 100 * fpr) for layout, ns, fpr in points if family(layout) == name]
        if mine:
            axes.scatter(*zip(*mine), s=26, color=COLOURS[name], marker=MARKERS[name], label=name, zorder=3, linewidths=0)
    # Their names stand in a column at the left, each joined to its point.
    low, high = min(fpr for _, _, fpr in points), min(max(fpr for _, _, fpr in points), 0.08)
    places = spread([math.log(100 * fpr) for _, _, fpr in reversed(best)], math.log(high / low) * 0.06)
    for (layout, ns, fpr), place in zip(reversed(best), places):
        axes.annotate(label_of(layout), (ns, 100 * fpr), xytext=(best[0][1] / 1.25, math.exp(place)), ha="right",
                      va="center", fontsize=9, color=COLOURS[family(layout)],
                      arrowprops={"arrowstyle": "-", "color": COLOURS[family(layout)], "linewidth": 0.8, "relpos": (1, 0.5),
                                  "shrinkB": 4})
    others = [(title, view.ns[row], view.fpr[row]) for name, title in BASELINES.items()
              if (row := f"lookup_one/{name}/1MiB") in view.ns and view.fpr.get(row)]
    # By turns above and below their points: they lie close together.
    for i, (title, ns, fpr) in enumerate(sorted(others, key=lambda other: other[1])):
        axes.scatter([ns], [100 * fpr], s=46, facecolors="none", edgecolors="#222222", linewidths=1.3, zorder=3)
        axes.annotate(title.replace(", written plainly", ",\nwritten plainly"), (ns, 100 * fpr),
                      xytext=(8 if i % 2 else 0, -9 if i % 2 else 9), textcoords="offset points",
                      ha="right" if i % 2 else "center",
                      va="top" if i % 2 else "bottom", fontsize=8.5, color="#222222")
    axes.set_xscale("log")
    axes.set_yscale("log")
    xs = [ns for _, ns, _ in points + others]
    ys = [100 * fpr for _, _, fpr in points + others]
    axes.set_xlim(min(xs) / 2.9, max(xs) * 1.35)
    axes.set_ylim(min(ys) / 1.3, min(max(ys), 8) * 1.1)
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    axes.set_xlabel("ns per key (logarithmic): batches; other filters (circles) one by one, which is all they have")
    axes.set_ylabel("false-positive rate, per cent (logarithmic)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9.5)
    return save(figure, path)


def by_target(view, path):
    shown = [target for target in view.targets
             if view.of_target("lookup_batch/split512/1MiB", target) in view.ns]
    if len(shown) < 2:
        return False
    layouts = LAYOUTS + COUNTING_LAYOUTS[:1]
    figure, axes = new_figure("The same filter on each SIMD target", view,
                              "1 MiB, one thread, batches, 10 bits (counters) per key", height=5.2)
    height = 0.8 / len(layouts)
    longest = 0
    for i, layout in enumerate(layouts):
        operation = "count_lookup" if layout in COUNTING_LAYOUTS else "lookup_batch"
        bars = [(position, view.ns[row]) for position, target in enumerate(shown)
                if (row := view.of_target(f"{operation}/{layout}/1MiB", target)) in view.ns]
        if not bars:
            continue
        where = [position - 0.4 + (i + 0.5) * height for position, _ in bars]
        axes.barh(where, [ns for _, ns in bars], height * 0.92, color=COLOURS[family(layout)], label=label_of(layout))
        longest = max(longest, max(ns for _, ns in bars))
        for y, (position, ns) in zip(where, bars):
            # Beside the limit's line, where the bar ends at it.
            limit = view.ns.get(view.of_target("limit/hash_touch/1MiB", shown[position]), 0)
            axes.text(limit if limit / 1.2 < ns < limit else ns, y, f" {ns:.2f}", va="center", fontsize=7.5,
                      color="#333333")
    for position, target in enumerate(shown):
        limit = view.of_target("limit/hash_touch/1MiB", target)
        if limit in view.ns:
            axes.plot([view.ns[limit]] * 2, [position - 0.42, position + 0.42], color="#111111", linewidth=1.6,
                      label="limit: hash the key, load its line" if position == 0 else None)
    axes.set_yticks(range(len(shown)), shown)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlim(0, longest * 1.08)
    axes.set_xlabel("ns per key, lower is better")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9.5)
    return save(figure, path)


def by_threads(view, path):
    series = []
    colours = ["#0072b2", "#009e73", "#d55e00", "#cc79a7"]
    for size, colour in zip(SIZES, colours):
        rows = view.thread_rows(f"lookup_batch/split512/{size}")
        if len(rows) > 1:
            series.append((spaced(size), colour, [(count, 1e3 / view.ns[row]) for count, row in rows.items()]))
    if not series:
        return False
    figure, axes = new_figure("Lookups by several threads at once", view,
                              "split512, batches, each thread with its own keys, one filter")
    most = max(count for _, _, points in series for count, _ in points)
    for title, colour, points in series:
        counts, speeds = zip(*points)
        axes.plot(counts, speeds, color=colour, linewidth=2, marker="o", markersize=5, label=title)
        axes.plot([1, most], [speeds[0], speeds[0] * most], color=colour, linewidth=1, linestyle=(0, (2, 3)))
        axes.annotate(f"{speeds[-1] / speeds[0]:.2f} x", (counts[-1], speeds[-1]), xytext=(6, 0),
                      textcoords="offset points", va="center", fontsize=9, color=colour)
    axes.plot([], [], color="#555555", linewidth=1, linestyle=(0, (2, 3)), label="one thread's, times the threads")
    axes.set_xlim(1 - 0.03 * most, most * 1.06)
    axes.set_ylim(0, None)
    counts = sorted({count for _, _, points in series for count, _ in points})
    if most > 16:
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.93, most * 1.3)
        axes.set_yscale("log")
        axes.set_ylim(None, None)
        log_ticks(axes.yaxis)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("threads")
    axes.set_ylabel("million lookups per second, higher is better")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9.5, title="memory of the filter")
    return save(figure, path)


# File name, function, and what the picture shows for those who cannot see it.
PLOTS = [
    ("lookup_by_size.svg", lookup_by_size, "ns per key of lookups for filters from 32 KiB up, by layout, with the limit"),
    ("fpr_against_cost.svg", fpr_against_cost, "false-positive rate against ns per key of every layout and k, and of "
     "other filters"),
    ("by_target.svg", by_target, "ns per key of each layout on each SIMD target"),
    ("by_threads.svg", by_threads, "million lookups per second by number of threads"),
]
