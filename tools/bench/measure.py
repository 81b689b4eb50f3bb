"""Runs the stages of a plan and gathers what they measured into one result.

A result is the JSON of bloomline_bench with less in it: of each row and process the fastest repetition, as a row with
"process": i, so that tools/bench_compare.sh reads it too.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from results import BadInput, read_json

KEPT = ("run_type", "items_per_second", "fpr", "inserts_per_second", "lookups_per_second", "label")
# Of no meaning elsewhere, or not for others to read.
DROPPED_CONTEXT = ("host_name", "executable", "caches", "library_build_type", "cpu_scaling_enabled", "load_avg")


def rounded(value):
    """More digits than anything here is exact to, and half of what JSON would write."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


class Gatherer:
    """rows: the kept ones; errors: {row: message} of rows that fail their checks; skipped: of those without memory."""

    def __init__(self):
        self.rows = []
        self.errors = {}
        self.skipped = {}
        self.context = None
        self.processes = 0
        self.more_context = {}

    def add(self, data):
        if self.context is None:
            self.context = {key: value for key, value in data["context"].items() if key not in DROPPED_CONTEXT}
        fastest = {}
        for row in data["benchmarks"]:
            name = row.get("run_name", row["name"])
            if row.get("error_occurred"):
                message = row.get("error_message", "failed")
                # A machine with less memory runs the rest.
                (self.skipped if message.startswith("needs ") else self.errors)[name] = message
            elif row.get("run_type") == "iteration" and row.get("items_per_second"):
                best = fastest.get(name)
                if best is None or row["items_per_second"] > best["items_per_second"]:
                    fastest[name] = row
        for row in fastest.values():
            self.rows.append({"name": row.get("run_name", row["name"]),
                              **{key: rounded(row[key]) for key in KEPT if row.get(key)}, "process": self.processes})
        self.processes += 1

    def write(self, path, **more_context):
        """One row to a line. The file is there whole or not at all."""
        self.more_context.update(more_context)
        context = {**(self.context or {}), **self.more_context, "processes": self.processes, "skipped": self.skipped,
                   "errors": self.errors}
        rows = ",\n".join(json.dumps(row) for row in self.rows)
        text = f'{{"context": {json.dumps(context, indent=1)},\n"benchmarks": [\n{rows}\n]}}\n'
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(path + ".new", path)


def run_process(program, stage):
    """The JSON of one process."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        called = subprocess.run(
            [program, *stage.options, f"--benchmark_filter={stage.pattern}",
             f"--benchmark_repetitions={stage.repetitions}", f"--benchmark_min_time={stage.seconds}",
             "--benchmark_enable_random_interleaving=true", f"--benchmark_out={out.name}",
             "--benchmark_out_format=json"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        try:
            return read_json(out.name)
        except BadInput as error:
            said = (called.stderr.strip() or called.stdout.strip())[-500:]
            raise BadInput(f"{program} ended with {called.returncode} in stage '{stage.title}': {said}") from error


def measure(program, stages, partial_path, mode):
    """Runs all; after each stage `partial_path` has what there is, so that an interruption loses little."""
    gatherer = Gatherer()
    begin = time.monotonic()
    for number, stage in enumerate(stages, 1):
        for i in range(stage.processes):
            elapsed = int(time.monotonic() - begin)
            print(f"  {elapsed // 60:3d}:{elapsed % 60:02d}  {number} of {len(stages)}  {stage.title}"
                  + (f", process {i + 1} of {stage.processes}" if stage.processes > 1 else ""),
                  file=sys.stderr, flush=True)
            gatherer.add(run_process(program, stage))
        gatherer.write(partial_path, mode=mode, seconds=round(time.monotonic() - begin))
    return gatherer
