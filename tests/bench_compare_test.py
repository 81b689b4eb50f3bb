#!/usr/bin/env python3
"""tools/bench_compare.sh: verdicts on synthetic measurements with the noise of a shared machine, and its command line.

  tests/bench_compare_test.py [-v]

The seeds are fixed, so that a run either always passes or always fails.
"""

import contextlib
import importlib.util
import io
import json
import math
import os
import random
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(ROOT, "tools", "bench_compare.sh")
sys.dont_write_bytecode = True
_spec = importlib.util.spec_from_file_location("bench_compare", os.path.join(ROOT, "tools", "bench_compare.py"))
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)

LIMITS = {"limit/hash": 0.42, "limit/hash_touch/1MiB": 0.8}
ROWS = {f"{operation}/{layout}/1MiB": 0.9 + 0.35 * i + 1.7 * j
        for i, layout in enumerate(["split512", "word64k5", "split256", "sector512z2k6", "sector512z4k8", "line512k7"])
        for j, operation in enumerate(["lookup_batch", "insert_batch", "lookup_one"])}
ROWS.update({f"{operation}/{layout}/1MiB": 1.2 + 0.4 * j
             for layout in ["counting4", "counting8"]
             for j, operation in enumerate(["count_lookup", "count_add", "count_remove"])})
THRESHOLD = math.log(1.05)


class Machine:
    """Draws measurements: a tenth of them half as long again, a drift of +-3 % over the run, an uneven jitter."""

    def __init__(self, seed, speed=1.0):
        self.random = random.Random(seed)
        self.speed = speed

    def file(self, slower=None, repetitions=10, rows=None, one_process=False):
        """The JSON of a recording, or of one process; `slower`: {row: factor}."""
        draw = self.random
        phase = draw.random()
        out = []
        for row, ns in {**LIMITS, **ROWS}.items():
            if rows is not None and row not in rows:
                continue
            for i in range(repetitions):
                drift = 1 + 0.03 * math.sin(2 * math.pi * (phase + draw.random()))
                jitter = math.exp(abs(draw.gauss(0, 0.02)))
                outlier = 1.5 if draw.random() < 0.1 else 1.0
                measured = ns * (slower or {}).get(row, 1.0) * self.speed * drift * jitter * outlier
                process = {} if one_process else {"process": i}
                out.append({**process, "name": row, "run_name": row, "run_type": "iteration", "repetition_index": i,
                            "items_per_second": 1e9 / measured})
        return {"context": {"target": "AVX3", "cpu": f"CPU at {self.speed}"}, "benchmarks": out}


class NoisyBench:
    """Stands for a build: three of ten processes run beside a neighbour, which slows each row by a share of its own."""

    program = "synthetic"

    def __init__(self, machine, slower=None):
        self.machine = machine
        self.slower = slower or {}

    def names(self):
        return [*LIMITS, *ROWS]

    def measure(self, rows, repetitions):
        draw = self.machine.random
        slower = dict(self.slower)
        if draw.random() < 0.3:
            slower = {row: slower.get(row, 1.0) * draw.uniform(1.2, 1.7) for row in rows}
        return compare.Results(self.machine.file(slower, repetitions, set(rows), True), "synthetic")


def verdicts_of_files(old, new):
    report = compare.Report("files", THRESHOLD)
    compare.compare_files(compare.Results(old, "old"), compare.Results(new, "new"), None, THRESHOLD, report)
    return report


def verdicts_of_builds(old, new, rounds=10):
    report = compare.Report("builds", THRESHOLD)
    with contextlib.redirect_stderr(io.StringIO()):
        compare.compare_builds(old, new, None, THRESHOLD, rounds, report)
    return report


class Statistics(unittest.TestCase):
    def test_files_without_a_change_rarely_alarm(self):
        runs = 1000
        alarms = 0
        for seed in range(runs):
            machine = Machine(seed)
            report = verdicts_of_files(machine.file(), machine.file())
            self.assertEqual(len(report.rows), len(ROWS))
            alarms += report.status
        self.assertLess(alarms, runs / 200)

    def test_files_with_a_slower_row_are_told(self):
        runs, found, others = 400, 0, 0
        row = "lookup_batch/split512/1MiB"
        for seed in range(runs):
            machine = Machine(10_000 + seed)
            regressions = verdicts_of_files(machine.file(), machine.file({row: 1.15})).regressions
            found += row in regressions
            others += len(set(regressions) - {row})
        self.assertGreater(found, 0.95 * runs)
        self.assertLess(others, runs / 100)

    def test_files_of_machines_of_different_speed(self):
        row = "insert_batch/line512k7/1MiB"
        found = 0
        for seed in range(100):
            old = Machine(20_000 + seed).file()
            slow = Machine(30_000 + seed, speed=2.5)
            self.assertEqual(verdicts_of_files(old, slow.file()).status, 0)
            found += verdicts_of_files(old, slow.file({row: 1.15})).regressions == [row]
        self.assertGreater(found, 90)

    def test_builds_without_a_change_never_alarm(self):
        for seed in range(40):
            machine = Machine(40_000 + seed)
            self.assertEqual(verdicts_of_builds(NoisyBench(machine), NoisyBench(machine)).regressions, [])

    def test_builds_with_a_slower_row_are_told(self):
        row = "count_add/counting4/1MiB"
        found = 0
        for seed in range(40):
            machine = Machine(50_000 + seed)
            regressions = verdicts_of_builds(NoisyBench(machine), NoisyBench(machine, {row: 1.15})).regressions
            self.assertLessEqual(set(regressions), {row})
            found += bool(regressions)
        self.assertGreater(found, 38)

    def test_a_slower_hash_shows_in_the_limits(self):
        machine = Machine(7)
        slower = {row: 1.2 for row in [*LIMITS, *ROWS]}
        self.assertEqual(verdicts_of_builds(NoisyBench(machine), NoisyBench(machine, slower)).regressions, [*LIMITS])

    def test_a_row_that_fails_in_a_build(self):
        class Failing(NoisyBench):
            def measure(self, rows, repetitions):
                results = super().measure(rows, repetitions)
                for row in ("limit/hash_touch/1MiB", "insert_batch/split512/1MiB"):
                    results.errors[row] = "wrong bits"
                    results.ns.pop(row, None)
                return results

        machine = Machine(9)
        report = verdicts_of_builds(NoisyBench(machine), Failing(machine))
        self.assertEqual((report.status, len(report.failed)), (1, 2))
        self.assertEqual(len(report.rows), len(ROWS))  # limit/hash for the one that failed
        with self.assertRaises(compare.BadInput):
            verdicts_of_builds(Failing(machine), NoisyBench(machine))

    def test_a_faster_row_is_no_regression(self):
        row = "lookup_batch/split512/1MiB"
        machine = Machine(8)
        report = verdicts_of_files(machine.file(), machine.file({row: 0.7}))
        self.assertEqual(report.status, 0)
        self.assertIn("faster", [verdict for name, _, verdict in report.rows if name == row])

    def test_one_process_is_no_ground_for_a_regression(self):
        row = "lookup_batch/split512/1MiB"
        machine = Machine(8)
        report = verdicts_of_files(machine.file(one_process=True), machine.file({row: 1.3}, one_process=True))
        self.assertEqual(report.status, 0)
        self.assertEqual([name for name, _, verdict in report.rows if verdict == "slower?"], [row])
        self.assertIn("--record", report.notes[-1])

    def test_limit_of_a_row(self):
        rows = {"limit/hash_touch/1MiB", "limit/hash_touch/512MiB", "limit/hash_touch/512MiB/on:line512k7",
                "limit/hash_rmw/512MiB", "limit/hash_touch/1MiB/target:AVX2", "limit/xxh3/strings"}
        for row, limit in {
                "lookup_batch/split512/1MiB": "limit/hash_touch/1MiB",
                "lookup_one/split512/1MiB/hit0": "limit/hash_touch/1MiB",
                "lookup_batch/line512k7/512MiB": "limit/hash_touch/512MiB/on:line512k7",
                "lookup_batch/split512/512MiB": "limit/hash_touch/512MiB",
                "count_add/counting4/512MiB": "limit/hash_rmw/512MiB",
                "lookup_batch/split512/1MiB/target:AVX2": "limit/hash_touch/1MiB/target:AVX2",
                "lookup_batch/split512/1MiB/strings": "limit/xxh3/strings",
                "lookup_batch/split512/32KiB": None,
                "limit/hash_touch/1MiB": None}.items():
            self.assertEqual(compare.limit_of(row, rows), limit, row)


class CommandLine(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def write(self, name, data):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(data if isinstance(data, str) else json.dumps(data))
        return path

    def build(self, name, slower):
        """A build directory whose bloomline_bench is a script that draws its measurements."""
        os.makedirs(os.path.join(self.directory, name, "bin"))
        path = self.write(os.path.join(name, "bin", "bloomline_bench"), f"""#!{sys.executable}
import json, os, re, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from bench_compare_test import LIMITS, ROWS, Machine
options = dict(argument[2:].split("=", 1) for argument in sys.argv[1:] if "=" in argument)
names = [*LIMITS, *ROWS, "lookup_batch/split512/512MiB"]
if "--benchmark_list_tests" in sys.argv:
    print("\\n".join(names))
    sys.exit()
rows = [name for name in names if re.search(options["benchmark_filter"], name)]
result = Machine(os.getpid()).file({slower!r}, int(options["benchmark_repetitions"]), rows, True)
with open(options["benchmark_out"], "w") as out:
    json.dump(result, out)
""")
        os.chmod(path, stat.S_IRWXU)
        return os.path.join(self.directory, name)

    def run_script(self, *arguments):
        called = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=250, check=False)
        return called.returncode, called.stdout, called.stderr

    def test_usage(self):
        good = self.write("good.json", Machine(1).file())
        few = self.write("few.json", Machine(1).file(repetitions=3))
        other_target = Machine(1).file()
        other_target["context"]["target"] = "AVX2"
        for arguments, told in [
                ((), "OLD"), ((good,), "NEW"), ((good, good, good), "unrecognized"), ((good, good, "--nope"), "--nope"),
                ((good, good, "--threshold", "-1"), "--threshold"), ((good, good, "--threshold", "nan"), "nan"),
                ((good, good, "--threshold", "0"), "above 0"), ((good, good, "--rounds", "4"), "5 to 1000"),
                ((good, good, "--filter", "("), "regular expression"), ((good, good, "--filter", "nothing"), "nothing"),
                ((good, os.path.join(self.directory, "absent.json")), "absent.json"), ((good, self.directory), "both"),
                ((good, self.write("bad.json", "{")), "bad.json"), ((good, self.write("list.json", "[]")), "list.json"),
                ((good, self.write("empty.json", {"context": {}, "benchmarks": []})), "no rows"),
                ((good, self.write("target.json", other_target)), "AVX2"), ((good, few), "repetitions"),
                ((self.directory, self.directory), "no bloomline_bench")]:
            status, out, err = self.run_script(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn(told, err)
        self.assertEqual(self.run_script("--help")[0], 0)

    def test_files(self):
        row = "lookup_batch/split256/1MiB"
        old = self.write("old.json", Machine(1).file())
        new = self.write("new.json", Machine(2).file({row: 1.3}))
        status, out, _ = self.run_script(old, new)
        self.assertEqual(status, 1)
        self.assertRegex(out, row + r" .*REGRESSION\n")
        self.assertIn("geometric mean", out)
        self.assertEqual(self.run_script(old, new, "--threshold", "40%")[0], 0)
        self.assertEqual(self.run_script(old, new, "--filter", "^insert_batch/")[0], 0)
        status, out, _ = self.run_script(old, new, "--json")
        result = json.loads(out)
        self.assertEqual((status, result["regressions"]), (1, [row]))
        told = next(r for r in result["rows"] if r["name"] == row)
        self.assertTrue(1.05 < told["lower"] <= told["ratio"] <= told["upper"])
        self.assertAlmostEqual(result["geomean"], 1.3 ** (1 / len(ROWS)), delta=0.03)

    def test_a_row_that_fails_its_checks_fails(self):
        old = self.write("old.json", Machine(1).file())
        data = Machine(1).file()
        data["benchmarks"][-1].update(error_occurred=True, error_message="wrong answers")
        status, out, _ = self.run_script(old, self.write("new.json", data))
        self.assertEqual(status, 1)
        self.assertIn("wrong answers", out)

    def test_builds(self):
        row = "lookup_one/line512k7/1MiB"
        old, same, slow = self.build("old", {}), self.build("same", {}), self.build("slow", {row: 1.25})
        status, out, err = self.run_script(old, same, "--rounds", "5", "--json")
        self.assertEqual(status, 0, out + err)
        self.assertEqual(json.loads(out)["regressions"], [])
        status, out, err = self.run_script(old, os.path.join(slow, "bin", "bloomline_bench"), "--rounds", "6")
        self.assertEqual(status, 1, out + err)
        self.assertRegex(out, row + r" .*REGRESSION\n")
        self.assertIn("measuring again", err)
        files = [os.path.join(self.directory, name) for name in ("old.json", "slow.json")]
        for file, build in zip(files, (old, slow)):
            status, out, err = self.run_script("--record", file, build, "--rounds", "8")
            self.assertEqual((status, out), (0, ""), err)
        status, out, err = self.run_script(*files)
        self.assertEqual(status, 1, out + err)
        self.assertRegex(out, row + r" .*REGRESSION\n")


if __name__ == "__main__":
    unittest.main()
