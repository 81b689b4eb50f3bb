#!/usr/bin/env python3
"""Compares two builds, or two results, of bloomline_bench. Called by tools/bench_compare.sh, whose -h says how."""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
import ratios  # noqa: E402
from results import LAYOUT_ROWS, BadInput, Results, is_limit, limit_of, read_json  # noqa: E402

# The chance, over all rows together, that some row which became slower by exactly the threshold is reported. One that
# did not change is far less likely to be.
FAMILY_LEVEL = 0.05
CONFIRM_LEVEL = 0.01
SCREEN_LEVEL = 0.05  # per row, before confirmation

# Many short repetitions per process: some of them fall between the disturbances, and the fastest counts.
REPETITIONS = 8
REPETITION_SECONDS = 0.005
CONFIRM_REPETITIONS = 20


class Bench:
    """One build's bloomline_bench."""

    def __init__(self, path, all_rows):
        """all_rows: every k of every layout too."""
        self.options = ["--all"] if all_rows else []
        self.program = os.path.join(path, "bin", "bloomline_bench") if os.path.isdir(path) else path
        if not (os.path.isfile(self.program) and os.access(self.program, os.X_OK)):
            raise BadInput(f"{path}: no bloomline_bench there; build it: cmake --build BUILD --target bloomline_bench")

    def _call(self, options):
        try:
            return subprocess.run([self.program, *self.options, *options], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
        except OSError as error:
            raise BadInput(f"{self.program}: {error.strerror}") from error

    def names(self):
        called = self._call(["--benchmark_list_tests", "--benchmark_filter=all"])
        if called.returncode != 0:
            raise BadInput(f"{self.program}: lists no benchmarks: {called.stderr.strip()[-500:]}")
        return called.stdout.split()

    def measure(self, rows, repetitions):
        return Results(self.run(rows, repetitions), self.program)

    def run(self, rows, repetitions):
        """The JSON of one process."""
        escaped = "|".join(re.sub(r"([.+*?^$()\[\]{}|\\])", r"\\\1", row) for row in rows)
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            called = self._call([f"--benchmark_filter=^({escaped})$", f"--benchmark_repetitions={repetitions}",
                                 "--benchmark_enable_random_interleaving=true",
                                 f"--benchmark_min_time={REPETITION_SECONDS}", f"--benchmark_out={out.name}",
                                 "--benchmark_out_format=json"])
            try:
                return read_json(out.name)
            except BadInput as error:
                raise BadInput(f"{self.program} ended with {called.returncode}: {called.stderr.strip()[-500:]}") \
                    from error


class Rounds:
    """What was measured: one value per row and round on either side, the fastest repetition of that round."""

    def __init__(self, old, new, rows, rounds, repetitions):
        self.sides = ({row: [] for row in rows}, {row: [] for row in rows})
        self.errors = ({}, {})
        self.contexts = [None, None]
        for i in range(rounds):
            # A B, B A, A B ...: whatever drifts meets both alike.
            for side in ((0, 1), (1, 0))[i % 2]:
                results = (old, new)[side].measure(rows, repetitions)
                self.contexts[side] = results.context
                self.errors[side].update(results.errors)
                for row in rows:
                    if row in results.ns:
                        self.sides[side][row].append(min(results.ns[row]))
                    elif row not in results.errors:
                        raise BadInput(f"{(old, new)[side].program}: did not measure {row}")
            print(f"\rround {i + 1} of {rounds}, {len(rows)} rows ", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)


def changes_of(old, new, rows, usable, tail, paired):
    """Change by row, each relative to its limit among the rows `usable`. Limits are compared by their times."""
    changes = {}
    for row in rows:
        limit = limit_of(row, usable)
        series = (old[row], old[limit] if limit else [1.0], new[row], new[limit] if limit else [1.0])
        changes[row] = ratios.Change(series, tail, paired)
    return changes


class Report:
    def __init__(self, mode, threshold):
        self.mode = mode
        self.threshold = threshold
        self.notes = []
        self.failed = {}
        self.rows = []  # (name, change, verdict), in the order of the run

    @property
    def regressions(self):
        return [row for row, _, verdict in self.rows if verdict == "REGRESSION"]

    @property
    def geomean(self):
        return ratios.geometric_mean([change for row, change, _ in self.rows if not is_limit(row)])

    @property
    def status(self):
        return 1 if self.regressions or self.failed else 0

    def print_text(self):
        for note in self.notes:
            print(note)
        print(f"{'benchmark (relative to its limit)':<44}{'new/old':>9}{'interval':>17}{'minima':>9}  verdict")
        for row, change, verdict in self.rows:
            lower, upper = (math.exp(bound) for bound in change.interval)
            print(f"{row:<44}{math.exp(change.estimate):>9.3f}{f'{lower:.3f} ... {upper:.3f}':>17}"
                  f"{math.exp(change.smallest):>9.3f}  {verdict}")
        for row, message in self.failed.items():
            print(f"FAILED in NEW: {row}: {message}")
        failed = f", {len(self.failed)} failed" if self.failed else ""
        print(f"geometric mean of new/old {self.geomean:.3f}; {len(self.regressions)} of {len(self.rows)} rows slower "
              f"by more than {100 * math.expm1(self.threshold):g} %{failed}")

    def print_json(self):
        rows = [{"name": row, "ratio": math.exp(change.estimate), "lower": math.exp(change.interval[0]),
                 "upper": math.exp(change.interval[1]), "tail": change.tail,
                 "ratio_of_minima": math.exp(change.smallest), "verdict": verdict}
                for row, change, verdict in self.rows]
        geomean = self.geomean
        print(json.dumps({"mode": self.mode, "threshold": math.expm1(self.threshold), "notes": self.notes, "rows": rows,
                          "geomean": None if math.isnan(geomean) else geomean, "failed": self.failed,
                          "regressions": self.regressions}, indent=2))


def pick_rows(old, new, pattern, report):
    """The rows to compare, in NEW's order."""
    wanted = pattern.search if pattern else LAYOUT_ROWS.match
    rows = [row for row in new if wanted(row) and row in old]
    one_sided = [row for row in [*old, *new] if wanted(row) and not (row in old and row in new)]
    if one_sided:
        report.notes.append("on one side only, not compared: " + ", ".join(one_sided))
    if not rows:
        raise BadInput("no row that both sides have matches " + (pattern.pattern if pattern else LAYOUT_ROWS.pattern))
    return rows


def compare_files(old, new, pattern, threshold, report):
    if old.context.get("target") != new.context.get("target"):
        raise BadInput(f"OLD was measured on target {old.context.get('target')}, NEW on {new.context.get('target')}")
    report.failed = {row: message for row, message in new.errors.items()
                     if (pattern.search if pattern else LAYOUT_ROWS.match)(row)}
    if old.context.get("cpu") != new.context.get("cpu"):
        report.notes.append(f"different CPUs, {old.context.get('cpu')} and {new.context.get('cpu')}: a ratio to the "
                            "limit may differ between them by more than the threshold without any change to the code")
    rows = [row for row in pick_rows(list({**old.ns, **old.errors}), list({**new.ns, **new.errors}), pattern, report)
            if row in old.ns and row in new.ns and not is_limit(row)]
    failed_in_old = [row for row in old.errors if row in new.ns or row in new.errors]
    if failed_in_old:
        report.notes.append("failed in OLD, not compared: " + ", ".join(failed_in_old))
    # Times of two runs say nothing: without a limit there is no comparison.
    both = old.ns.keys() & new.ns.keys()
    without = [row for row in rows if limit_of(row, both) is None]
    if without:
        report.notes.append("no limit row on both sides, not compared: " + ", ".join(without))
    few = [row for row in rows if row not in without and ratios.MIN_REPETITIONS >
           min(len(side.ns[name]) for side in (old, new) for name in (row, limit_of(row, both)))]
    rows = [row for row in rows if row not in without + few]
    if few:
        report.notes.append(f"fewer than {ratios.MIN_REPETITIONS} repetitions, not compared: " + ", ".join(few))
    if not rows and not report.failed:
        raise BadInput("nothing to compare; " + "; ".join(report.notes) + ". Measure with --benchmark_repetitions=10 "
                       "--benchmark_enable_random_interleaving=true")
    changes = changes_of(old.ns, new.ns, rows, both, FAMILY_LEVEL / max(1, len(rows)), paired=False)
    # All of a process may be a quarter slower in a row, with the same program (where its memory came to lie).
    one_process = min(old.processes, new.processes) < ratios.MIN_REPETITIONS
    if one_process:
        report.notes.append("a file has the repetitions of one process, which no regression can be concluded from: "
                            "bench_compare.sh --record OUT.json BUILD measures in several")
    for row, change in changes.items():
        slower = "slower?" if one_process else "REGRESSION"
        verdict = (slower if change.slower(threshold) else "faster" if change.faster(threshold) else
                   "unclear" if change.suspicious(threshold) else "ok")
        report.rows.append((row, change, verdict))


def record(bench, pattern, rounds, path):
    """Writes the rows and their limits, measured in `rounds` processes, as one file."""
    names = bench.names()
    rows = pick_rows(names, names, pattern, Report("record", 0))
    rows = [*dict.fromkeys([limit for row in rows if (limit := limit_of(row, names))] + rows)]
    merged = {"context": None, "benchmarks": []}
    for i in range(rounds):
        data = bench.run(rows, REPETITIONS)
        failed = Results(data, bench.program).errors
        if failed:
            raise BadInput("rows fail their checks: " + "; ".join(f"{row}: {text}" for row, text in failed.items()))
        merged["context"] = data["context"]
        merged["benchmarks"] += [{**row, "process": i} for row in data["benchmarks"] if row["run_type"] == "iteration"]
        print(f"\rround {i + 1} of {rounds}, {len(rows)} rows ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    try:
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(merged, stream, indent=1)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def failures_of_old(measured):
    return "OLD fails its own checks: " + "; ".join(f"{row}: {text}" for row, text in measured.errors[0].items())


def compare_builds(old, new, pattern, threshold, rounds, report):
    names = [old.names(), new.names()]
    rows = pick_rows(*names, pattern, report)
    both = set(names[0]) & set(names[1])
    limits = [limit for row in rows if (limit := limit_of(row, both))]
    # The limits run the library's hash: what slows them slows all rows, and no ratio would show it.
    limits = [*dict.fromkeys((["limit/hash"] if "limit/hash" in both else []) + limits)]
    measured = limits + [row for row in rows if row not in limits]
    first = Rounds(old, new, measured, rounds, REPETITIONS)
    if first.errors[0]:
        raise BadInput(failures_of_old(first))
    report.failed = first.errors[1]
    if first.contexts[0].get("target") != first.contexts[1].get("target"):
        raise BadInput("the builds run on different targets: " +
                       " and ".join(str(context.get("target")) for context in first.contexts))
    sound = [row for row in measured if row not in report.failed]
    changes = changes_of(*first.sides, sound, set(sound), SCREEN_LEVEL, paired=True)
    suspects = [row for row in sound if changes[row].suspicious(threshold)]
    confirmed = {}
    if suspects:
        print(f"measuring again, longer: {', '.join(suspects)}", file=sys.stderr)
        their_limits = [limit for row in suspects if (limit := limit_of(row, sound))]
        again = Rounds(old, new, [*dict.fromkeys(their_limits + suspects)], 2 * rounds, CONFIRM_REPETITIONS)
        if again.errors[0]:
            raise BadInput(failures_of_old(again))
        report.failed = {**report.failed, **again.errors[1]}
        # Fresh measurements: only their own number counts for the level, however the suspects were found.
        still_sound = set(again.sides[1]) - set(report.failed)
        confirmed = changes_of(*again.sides, [row for row in suspects if row in still_sound], still_sound,
                               CONFIRM_LEVEL / len(suspects), paired=True)
    for row in sound:
        if row in report.failed:
            continue
        change = confirmed.get(row, changes[row])
        verdict = "faster" if change.faster(threshold) else "ok"
        if row in confirmed:
            verdict = ("REGRESSION" if change.slower(threshold) else
                       "unclear" if change.suspicious(threshold) else "not confirmed")
        report.rows.append((row, change, verdict))


def is_json(path):
    if os.path.isdir(path):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(64).lstrip().startswith(b"{") or not os.access(path, os.X_OK)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def threshold_of(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text)
    if not match or not 0 < float(match[1]) <= 100:
        raise argparse.ArgumentTypeError(f"'{text}': must be above 0 and at most 100 per cent, as in 5%")
    return math.log1p(float(match[1]) / 100)


def rounds_of(text):
    if not text.isdigit() or not ratios.MIN_ROUNDS <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}': must be {ratios.MIN_ROUNDS} to 1000")
    return int(text)


def pattern_of(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': not a regular expression: {error}") from error


def main():
    parser = argparse.ArgumentParser(prog="bench_compare.sh", description="Compares two builds, or two results.")
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW", nargs="?")
    parser.add_argument("--record", metavar="OUT.json")
    parser.add_argument("--filter", type=pattern_of, metavar="REGEX")
    parser.add_argument("--threshold", type=threshold_of, default=threshold_of("5%"), metavar="PERCENT")
    parser.add_argument("--rounds", type=rounds_of, default=10, metavar="N")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if (arguments.new is None) != (arguments.record is not None):
        parser.error("OLD and NEW are needed" if arguments.new is None else "--record takes one build")
    every_k = arguments.filter is not None
    try:
        if arguments.record is not None:
            record(Bench(arguments.old, every_k), arguments.filter, arguments.rounds, arguments.record)
            return
        files = [is_json(path) for path in (arguments.old, arguments.new)]
        if files[0] != files[1]:
            raise BadInput("OLD and NEW must both be builds or both be JSON files")
        report = Report("files" if files[0] else "builds", arguments.threshold)
        if files[0]:
            compare_files(Results.read(arguments.old), Results.read(arguments.new), arguments.filter,
                          arguments.threshold, report)
        else:
            compare_builds(Bench(arguments.old, every_k), Bench(arguments.new, every_k), arguments.filter,
                           arguments.threshold, arguments.rounds, report)
    except BadInput as error:
        print(f"bench_compare.sh: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception:  # Python would end with 1, which says "regression"
        traceback.print_exc()
        sys.exit(2)
    if arguments.json:
        report.print_json()
    else:
        report.print_text()
    sys.exit(report.status)


if __name__ == "__main__":
    main()
