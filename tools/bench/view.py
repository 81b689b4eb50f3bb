"""A result as the report needs it: ns per key, ratios to the limits, FPR."""

import math
import re
import statistics

from results import BadInput, limit_of, read_json

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
SIZES = ["32KiB", "1MiB", "16MiB", "512MiB"]

# In this order in tables and legends.
LAYOUTS = ["split512", "word64k5", "split256", "sector512z2k6", "sector512z4k8", "line512k7"]
COUNTING_LAYOUTS = ["counting4", "counting8"]
BASELINES = {
    "classic_plain": "classic filter, k = 7, written plainly",
    "split256_plain": "split-block filter without SIMD",
    "libbloom": "libbloom",
    "leveldb": "LevelDB's filter policy",
    "unordered_set": "std::unordered_set (exact)",
}


def size_bytes(name):
    match = re.fullmatch(r"(\d+)([KMG]?i?B)", name)
    return int(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None


def size_name(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g} {unit}"
    return f"{size} B"


def spaced(size):
    """'32KiB' as people write it."""
    return re.sub(r"(?<=\d)(?=[KMG])", " ", size)


class View:
    """ns[row]: of the fastest repetition of all processes; fpr[row] where the row has one; context."""

    def __init__(self, data, source):
        self.ns = {}
        self.fpr = {}
        self.rows = {}  # the row itself, of the fastest repetition
        self._by_process = {}
        try:
            self.context = dict(data["context"])
            for row in data["benchmarks"]:
                self._add(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"{source}: not a result of tools/bench.sh: {error!r}") from error
        if not self.ns:
            raise BadInput(f"{source}: holds no rows with items_per_second")

    @staticmethod
    def read(path):
        return View(read_json(path), path)

    def _add(self, row):
        if row.get("run_type") != "iteration" or not row.get("items_per_second"):
            return
        name = row.get("run_name", row["name"])
        ns = 1e9 / row["items_per_second"]
        if ns < self.ns.get(name, math.inf):
            self.ns[name] = ns
            self.rows[name] = row
        if "fpr" in row:
            self.fpr[name] = row["fpr"]
        process = row.get("process", 0)
        fastest = self._by_process.setdefault(name, {})
        fastest[process] = min(ns, fastest.get(process, math.inf))

    def limit(self, row):
        """The name of the limit that a row is held against, or None."""
        return limit_of(row, self.ns)

    def ratio(self, row):
        """To the limit: the median over the processes that measured both; None where there is no limit."""
        limit = self.limit(row)
        if limit is None or row not in self.ns:
            return None
        mine, its = self._by_process[row], self._by_process[limit]
        both = [mine[process] / its[process] for process in mine if process in its]
        return statistics.median(both) if both else None

    @property
    def target(self):
        return self.context.get("target", "unknown")

    @property
    def targets(self):
        """The best first, then the others that were measured, from wide to narrow."""
        known = ["AVX3_SPR", "AVX3_ZEN4", "AVX3_DL", "AVX3", "AVX2", "SSE4", "SSSE3", "SVE2_128", "SVE2", "SVE_256", "SVE",
                 "NEON", "SCALAR"]
        seen = {part[len("target:"):] for row in self.ns for part in row.split("/") if part.startswith("target:")}
        return [self.target] + sorted(seen - {self.target}, key=lambda t: known.index(t) if t in known else len(known))

    def of_target(self, row, target):
        """The name of a base row on a target."""
        return row if target == self.target else f"{row}/target:{target}"

    def thread_rows(self, prefix, kind="real_time/threads"):
        """{threads: row} of the rows PREFIX/KIND:N, as in lookup_batch/split512/1MiB/real_time/threads:2."""
        found = {}
        for row in self.ns:
            match = re.fullmatch(re.escape(f"{prefix}/{kind}") + r":(\d+)(?:/real_time)?", row)
            if match:
                found[int(match[1])] = row
        return dict(sorted(found.items()))

    def points(self, size="1MiB", operation="lookup_batch"):
        """(layout with k, ns, FPR) of every layout and k at a size."""
        rows = [row for row in self.ns if re.fullmatch(rf"{operation}/[a-z0-9]+/{size}", row) and row in self.fpr]
        return [(row.split("/")[1], self.ns[row], self.fpr[row]) for row in rows]


def skyline(points, tie=1.02):
    """Those of (name, ns, FPR) that no other beats, by rising ns. What is not `tie` times faster is not faster."""
    return sorted((p for p in points
                   if not any(q[2] < p[2] and q[1] <= p[1] * tie or q[2] == p[2] and q[1] < p[1] for q in points)),
                  key=lambda p: p[1])
