#!/usr/bin/env python3
"""Reads the JSON of bloomline_bench or tools/bench.sh: ratios to the limits, with verdicts.

  tools/bench_report.py RESULT.json [MORE.json...]

Of repetitions (in one file or several) the fastest counts: on a shared machine, noise only ever adds time. The limit of
a row is limit/hash_touch of its size, on the same filter's pages (/on:LAYOUT) where that was measured.
Python's standard library is all that is needed. Exit status of the table: 1 where a bound is missed; stretch goals only
warn.
"""

import argparse
import json
import math
import sys

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
        if name.startswith("lookup_batch/split512/") and name.endswith("/real_time/threads:2"):
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


def main():
    parser = argparse.ArgumentParser(description="Ratios of the rows to the limits, with verdicts.")
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    sys.exit(print_table(Results(parser.parse_args().results)))


if __name__ == "__main__":
    main()
