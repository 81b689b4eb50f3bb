#!/usr/bin/env python3
"""tools/bench.sh without its measurements: the plan against the suite's rows, what is kept of a run, and the report.

  tests/bench_report_test.py [--bench PROGRAM] [-v]

PROGRAM is bloomline_bench; without it, its rows are not compared. Drawing is skipped where there is no matplotlib.
"""

import contextlib
import io
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))
import plan  # noqa: E402
from measure import Gatherer  # noqa: E402
from results import BadInput, limit_of  # noqa: E402
from view import View, skyline  # noqa: E402

try:
    import matplotlib  # noqa: F401
except ImportError:
    # The distribution's Python has the distribution's packages.
    other = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(other) and \
            subprocess.run([other, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
        os.execv(other, [other, *sys.argv])
    matplotlib = None

PROGRAM = None
CONTEXT = {"date": "2030-02-03T04:05:06+00:00", "host_name": "secret-host", "executable": "/secret/bloomline_bench",
           "num_cpus": 4, "cpu": "Some CPU", "cpu_family_model_stepping": "6/1/2", "target": "AVX2", "l1d_bytes": "49152",
           "l2_bytes": "1048576", "l3_bytes": "0", "numa_nodes": "1", "commit": "0123456789ab", "compiler": "g++ 12",
           "flags": "-O3", "kernel": "Linux 6", "governor": "performance", "transparent_huge_pages": "madvise",
           "bloomline_version": "9.9.9"}
NS = {"limit/hash_touch/1MiB": 0.8, "lookup_batch/split512/1MiB": 1.23, "lookup_batch/line512k7/1MiB": 1.61,
      "lookup_batch/word64k5/1MiB": 1.01, "lookup_one/split512/1MiB": 3.3, "lookup_one/libbloom/1MiB": 24.7,
      "insert_one/libbloom/1MiB": 22.2, "limit/hash_touch/1MiB/target:SSE4": 3.0,
      "lookup_batch/split512/1MiB/target:SSE4": 4.56, "lookup_batch/split512/1MiB/real_time/threads:1": 1.25,
      "lookup_batch/split512/1MiB/real_time/threads:4": 0.3125, "limit/hash_touch/1MiB/sweep": 0.81,
      "limit/hash_touch/2MiB/sweep": 0.91, "lookup_batch/split512/1MiB/sweep": 1.3,
      "lookup_batch/split512/2MiB/sweep": 1.7}
FPR = {"split512": 0.0105, "line512k7": 0.00969, "word64k5": 0.0178, "libbloom": 0.0082}


def row(name, ns, **more):
    layout = name.split("/")[1]
    fpr = {"fpr": FPR[layout]} if layout in FPR else {}
    label = {"label": "1024 KiB"} if layout == "libbloom" else {}
    return {"name": name, "run_name": name, "run_type": "iteration", "threads": 1, "items_per_second": 1e9 / ns,
            "cpu_time": 1.0, **fpr, **label, **more}


def run_of(ns, seed=1):
    """The JSON of one process, three repetitions a row, the fastest of them `ns`."""
    draw = random.Random(seed)
    rows = [row(name, time * factor) for name, time in ns.items() for factor in (1.5, 1.0, 1.0 + draw.random())]
    return {"context": CONTEXT, "benchmarks": rows}


def gathered(*runs):
    gatherer = Gatherer()
    for data in runs:
        gatherer.add(data)
    return gatherer


class Plan(unittest.TestCase):
    def setUp(self):
        if PROGRAM is None:
            self.skipTest("no bloomline_bench given")

    def rows(self, *options):
        listed = subprocess.run([PROGRAM, "--benchmark_list_tests", *options], capture_output=True, text=True, check=True)
        return listed.stdout.split()

    def test_every_stage_names_rows_and_finds_their_limits(self):
        known = self.rows("--all", "--benchmark_filter=all")
        for mode in plan.MODES.values():
            for stage in mode():
                rows = self.rows(*stage.options, f"--benchmark_filter={stage.pattern}")
                self.assertTrue(rows, stage.title)
                for name in rows:
                    # The program takes limits along by the rule that the report divides by.
                    if limit_of(name, known) is not None:
                        self.assertIn(limit_of(name, known), rows, f"{stage.title}: {name}")

    def test_full_measures_all_operations_and_sizes_of_all_layouts(self):
        measured = {name for stage in plan.full()
                    for name in self.rows(*stage.options, f"--benchmark_filter={stage.pattern}")}
        base = [name for name in self.rows("--benchmark_filter=all")
                if re.fullmatch(r"[a-z_]+/[a-z0-9_]+/[0-9A-Za-z]+", name)]
        self.assertGreater(len(base), 150)
        self.assertEqual([name for name in base if name not in measured], [])

    def test_filters_that_exclude_take_no_limits_along(self):
        rows = self.rows("--benchmark_filter=-limit")
        self.assertTrue(rows)
        self.assertEqual([name for name in rows if name.startswith("limit")], [])


class Kept(unittest.TestCase):
    def test_fastest_repetition_of_each_process(self):
        gatherer = gathered(run_of(NS), run_of({**NS, "lookup_batch/split512/1MiB": 1.11}))
        mine = [r for r in gatherer.rows if r["name"] == "lookup_batch/split512/1MiB"]
        self.assertEqual([(r["process"], round(1e9 / r["items_per_second"], 5)) for r in mine], [(0, 1.23), (1, 1.11)])

    def test_nothing_of_the_host(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "new", "r.json")
            gathered(run_of(NS)).write(path, mode="quick")
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
        self.assertNotIn("secret", text)
        self.assertEqual(json.loads(text)["context"]["mode"], "quick")
        self.assertEqual(len(json.loads(text)["benchmarks"]), len(NS))

    def test_failures_and_lack_of_memory_are_told_apart(self):
        data = run_of(NS)
        data["benchmarks"] += [{"name": "a/b/1MiB", "run_type": "iteration", "error_occurred": True,
                                "error_message": "wrong answers"},
                               {"name": "build/split512/512MiB", "run_type": "iteration", "error_occurred": True,
                                "error_message": "needs 7000 MiB of memory, 5 MiB are available"}]
        gatherer = gathered(data)
        self.assertEqual(list(gatherer.errors), ["a/b/1MiB"])
        self.assertEqual(list(gatherer.skipped), ["build/split512/512MiB"])


class Reading(unittest.TestCase):
    def view(self, *runs):
        gatherer = gathered(*runs)
        return View({"context": gatherer.context, "benchmarks": gatherer.rows}, "test")

    def test_ratio_is_within_a_process(self):
        # The second process is twice as slow throughout.
        slow = {name: 2 * ns for name, ns in NS.items()}
        view = self.view(run_of(NS), run_of(slow))
        self.assertAlmostEqual(view.ratio("lookup_batch/split512/1MiB"), 1.23 / 0.8, 5)
        self.assertAlmostEqual(view.ns["lookup_batch/split512/1MiB"], 1.23, 5)

    def test_skyline(self):
        points = [("a", 1.0, 0.02), ("b", 1.5, 0.01), ("worse", 1.6, 0.011), ("tie", 0.99, 0.03), ("c", 3.0, 0.001)]
        self.assertEqual([name for name, _, _ in skyline(points)], ["a", "b", "c"])

    def test_other_files_are_refused(self):
        for data in ({}, {"context": {}, "benchmarks": []}, {"context": {}, "benchmarks": [3]}, []):
            with self.assertRaises(BadInput):
                View(data, "x.json")


@unittest.skipIf(matplotlib is None, "no matplotlib")
class Report(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.report = self.path("B.md")
        self.text = "# Mine\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nbehind\n"
        self.write(self.report, self.text)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def read(self, path):
        with open(path, encoding="utf-8") as stream:
            return stream.read()

    def call(self, *arguments, program="/nonexistent"):
        import main  # imports matplotlib
        out, err = io.StringIO(), io.StringIO()
        argv = ["main.py", "--root", self.folder, "--program", program, "--report", self.report, "--plots",
                self.path("plots"), *arguments]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main.main()
            except SystemExit as ended:
                status = ended.code
        return status, out.getvalue() + err.getvalue()

    def result(self, ns, name="r.json"):
        gathered(run_of(ns), run_of(ns, 2)).write(self.path(name), mode="full", machine="some-cpu")
        return self.path(name)

    def test_only_what_is_between_the_markers_changes(self):
        status, said = self.call("--from", self.result(NS))
        self.assertEqual(status, 0, said)
        text = self.read(self.report)
        self.assertTrue(text.startswith("# Mine\n<!-- bench:begin -->\n") and
                        text.endswith("\n<!-- bench:end -->\nbehind\n"))
        self.assertNotIn("old", text)
        for part in ("Some CPU", "0123456789ab", "tools/bench.sh --full", "1.23 (1.54)", "4.56 (1.52)", "24.7 (20.1 x",
                     "3200 (4.00)", "0.969 %", "libbloom", "plots/lookup_by_size.svg"):
            self.assertIn(part, text)
        self.assertNotIn("512 MiB |", text)  # nothing was measured there
        again = self.call("--from", self.path("r.json"))
        self.assertEqual(again[0], 0)
        self.assertEqual(self.read(self.report), text)

    def test_plots_are_whole_and_the_same_each_time(self):
        self.call("--from", self.result(NS))
        files = sorted(os.listdir(self.path("plots")))
        self.assertEqual(files, ["by_target.svg", "by_threads.svg", "fpr_against_cost.svg", "lookup_by_size.svg"])
        first = {file: self.read(self.path("plots", file)) for file in files}
        for text in first.values():
            xml.etree.ElementTree.fromstring(text)
            self.assertIn("ns per key" if "per second" not in text else "threads", text)
        self.call("--from", self.path("r.json"))
        self.assertEqual(first, {file: self.read(self.path("plots", file)) for file in files})

    def test_a_plot_without_data_goes(self):
        self.call("--from", self.result(NS))
        few = {name: ns for name, ns in NS.items() if "target:" not in name}
        self.call("--from", self.result(few))
        self.assertNotIn("by_target.svg", os.listdir(self.path("plots")))
        self.assertNotIn("by_target.svg", self.read(self.report))

    def test_without_markers_nothing_is_written(self):
        for text in ("no markers\n", "<!-- bench:end --><!-- bench:begin -->", "<!-- bench:begin -->" * 2):
            self.write(self.report, text)
            status, said = self.call("--from", self.result(NS))
            self.assertEqual(status, 2)
            self.assertIn("bench:begin", said)
            self.assertEqual(self.read(self.report), text)

    def test_bad_input(self):
        self.write(self.path("bad.json"), "{")
        for arguments in (["--from", self.path("none.json")], ["--from", self.path("bad.json")]):
            status, said = self.call(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(arguments[1], said)
            self.assertEqual(self.read(self.report), self.text)
        self.assertEqual(self.call("--machine", "My Machine")[0], 2)

    def fake_program(self, data):
        self.write(self.path("data.json"), json.dumps(data))
        program = self.path("fake_bench")
        self.write(program, f"""#!/bin/sh
for argument; do case $argument in --benchmark_out=*) cp '{self.path("data.json")}' "${{argument#*=}}" ;; esac; done
""")
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        return program

    def test_a_run_writes_its_result_and_keeps_the_last_one(self):
        program = self.fake_program(run_of(NS))
        for _ in range(2):
            status, said = self.call(program=program)
            self.assertEqual(status, 0, said)
        files = sorted(os.listdir(self.path("results", "some-6-1-2")))
        self.assertEqual(len(files), 2)
        self.assertRegex(files[1], r"^\d{4}-\d\d-\d\d.json$")
        self.assertEqual(files[0], files[1].replace(".json", "-2.json"))
        self.assertNotIn("unfinished.json", os.listdir(self.path("results")))
        result = json.loads(self.read(self.path("results", "some-6-1-2", files[0])))
        self.assertEqual(result["context"]["processes"], sum(stage.processes for stage in plan.quick()))

    def test_a_failed_row_fails_the_run_and_leaves_the_report(self):
        data = run_of(NS)
        data["benchmarks"].append({"name": "a/b/1MiB", "run_type": "iteration", "error_occurred": True,
                                   "error_message": "wrong answers"})
        status, said = self.call(program=self.fake_program(data))
        self.assertEqual(status, 1)
        self.assertIn("wrong answers", said)
        self.assertEqual(self.read(self.report), self.text)

    def test_a_program_that_breaks_is_named(self):
        status, said = self.call(program="/bin/false")
        self.assertEqual(status, 2)
        self.assertIn("/bin/false", said)
        self.assertEqual(self.read(self.report), self.text)

    def test_several_machines_are_listed(self):
        os.makedirs(self.path("results", "other"))
        gathered(run_of({**NS, "lookup_batch/split512/1MiB": 7.77})).write(self.path("results", "other", "a.json"),
                                                                          mode="full", machine="other")
        self.call("--from", self.result(NS))
        self.assertIn("| other | `AVX2` | 0.80 | 7.77 (9.71) |", self.read(self.report))


if __name__ == "__main__":
    if "--bench" in sys.argv:
        at = sys.argv.index("--bench")
        PROGRAM = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
