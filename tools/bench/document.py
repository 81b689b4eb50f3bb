"""BENCHMARKS.md: the part between its markers, made from a result."""

import os

import plots
import tables
from results import BadInput
from view import BASELINES, COUNTING_LAYOUTS, LAYOUTS

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"


def picture(drawn, name):
    """The Markdown of a plot, where it was drawn: {file name: path from the document}."""
    alt = next(text for file, _, text in plots.PLOTS if file == name)
    return [f"![{alt}]({drawn[name]})", ""] if name in drawn else []


def section(title, *parts):
    """A heading and its parts, unless there are none. A part is a text, which counts only beside others, or lines."""
    if not any(isinstance(part, list) and part for part in parts):
        return []
    lines = [f"## {title}", ""]
    for part in parts:
        lines += [part, ""] if isinstance(part, str) and part else part or []
    return lines


def summary(view):
    """What one would say in two sentences."""
    said = []
    row, row16 = "lookup_batch/split512/1MiB", "lookup_batch/split512/16MiB"
    if row in view.ns and view.ratio(row):
        said.append(f"A batch lookup in a `split512` filter of 1 MiB takes **{tables.number(view.ns[row])} ns per key**, "
                    f"{view.ratio(row):.2f} times what it takes to hash the key and load its line, at a false-positive "
                    f"rate of {tables.percent(view.fpr[row])} with 10 bits per key.")
    others = [(view.ns[name] / view.ns[row16], title) for key, title in BASELINES.items()
              if (name := f"lookup_one/{key}/16MiB") in view.ns and row16 in view.ns]
    if others:
        least, most = min(others), max(others)
        said.append(f"At 16 MiB other filters take {least[0]:.0f} ({least[1]}) to {most[0]:.0f} ({most[1]}) times as "
                    "long per key.")
    large = "lookup_batch/split512/512MiB"
    if large in view.ns and view.ratio(large):
        said.append(f"At 512 MiB it is {tables.number(view.ns[large])} ns, {view.ratio(large):.2f} times the limit: memory "
                    "decides, not the filter.")
    return [" ".join(said), ""] if said else []


HOW_TO_READ = [
    "## How to read this", "",
    "- **ns per key** of one thread, random 64-bit keys, half of them members, 10 bits (or counters) per key; the fastest "
    "repetition of all processes, since neighbours on a machine only ever add time. FPR is measured with 2^20 absent keys.",
    "- **(ratio)** to the limit: hash the key and load its whole line, nothing else, on the same target (counted adds and "
    "removes at 512 MiB: and store it back). Median over the processes, row and limit within one process. Ratios carry "
    "over to other machines better than times; below 1.00 a layout needs less than the line, or its pages lie better.",
    "- **32 KiB** fits the first cache, **1 MiB** the second on many machines, **16 MiB** is probed with 16 Ki keys, so "
    "that what they touch stays in a cache, **512 MiB** is probed with 4 Mi keys: memory. In the plot against size, "
    "two keys per line of the filter are looked up in turn.",
    "- Every answer that was timed was checked: lookups against a scalar oracle, inserts by the filter's checksum, "
    "counters by coming back to what they were. Other filters: every member found, FPR and memory as they should be.",
    "- Two machines: `tools/bench_compare.sh OLD.json NEW.json` compares ratios with intervals; two builds on one machine: "
    "`tools/bench_compare.sh OLD NEW`. [Benchmarks in CI](docs/benchmark_ci.md) has the gates.", "",
]


def body(view, drawn, command, all_machines):
    lines = [f"*Made by `{command}`. Do not edit between the markers.*", ""]
    lines += summary(view)
    lines += section("Machine", tables.machine(view, command))
    lines += section("Lookups", picture(drawn, "lookup_by_size.svg"), "In batches, ns per key (ratio to the limit):",
                     tables.by_size(view, "lookup_batch", LAYOUTS), "One key at a time:",
                     tables.by_size(view, "lookup_one", LAYOUTS))
    lines += section("False positives against cost", picture(drawn, "fpr_against_cost.svg"),
                     "The best of what was measured at 1 MiB:", tables.best_layouts(view))
    others = [part for size, name in (("1MiB", "1 MiB"), ("16MiB", "16 MiB"), ("512MiB", "512 MiB"))
              if (rows := tables.others(view, size)) for part in (f"{name}, ns per key:", rows)]
    lines += section("Other filters", "On the same keys, each hashing them as its users would.", *others)
    lines += section("Inserting", tables.inserts(view))
    lines += section("Counting", tables.counting(view))
    lines += section("SIMD targets", picture(drawn, "by_target.svg"), tables.targets(view))
    lines += section("Threads", picture(drawn, "by_threads.svg"), tables.threads(view), tables.pools(view),
                     tables.concurrent(view))
    lines += section("Members or not, strings, pages", tables.hit_rates(view), tables.strings(view), tables.pages(view))
    if len(all_machines) > 1:
        lines += section("Machines", "The newest result of each under `results/`:", tables.machines(all_machines))
    skipped = view.context.get("skipped") or {}
    if skipped:
        lines += ["Not measured: " + "; ".join(f"`{row}` {why}" for row, why in sorted(skipped.items())) + ".", ""]
    return lines + HOW_TO_READ


def draw(view, folder):
    """All plots there is data for, into `folder`: {file name: path}. A plot of an earlier result does not stay."""
    os.makedirs(folder, exist_ok=True)
    drawn = {}
    for file, function, _ in plots.PLOTS:
        path = os.path.join(folder, file)
        if function(view, path):
            drawn[file] = path
        elif os.path.exists(path):
            os.remove(path)
    return drawn


def check(path):
    """The text before and behind the markers."""
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BadInput(f"{path}: must hold '{BEGIN}' and after it '{END}', once each, on lines of their own")
    return text[:text.index(BEGIN)], text[text.index(END) + len(END):]


def regenerate(path, plot_folder, view, command, all_machines):
    before, after = check(path)
    drawn = {file: os.path.relpath(plot, os.path.dirname(path) or ".")
             for file, plot in draw(view, plot_folder).items()}
    text = before + BEGIN + "\n\n" + "\n".join(body(view, drawn, command, all_machines)).rstrip() + "\n\n" + END + after
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(path + ".new", path)
