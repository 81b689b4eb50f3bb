"""Rows of bloomline_bench: reading its JSON, and which limit a row is held against. For tools/bench_compare.py."""

import json
import math
import re

SIZE = re.compile(r"^\d+(B|KiB|MiB|GiB)$")
DETAIL = re.compile(r"^(target:.*|pages:.*|sweep)$")
LAYOUT_ROWS = re.compile(r"^(lookup_batch|lookup_one|insert_batch|count_lookup|count_add|count_remove)"
                         r"/(word64k\d+|sector512z\d+k\d+|line512k\d+|split512|split256|counting\d+)/1MiB$")


class BadInput(Exception):
    """A message for the user."""


def is_limit(name):
    return name.startswith("limit/")


def limit_names(name):
    """The limits that a row may be divided by, the best first; none for limits themselves."""
    parts = name.split("/")
    if is_limit(name) or len(parts) < 3 or not SIZE.match(parts[2]):
        return []
    operation, layout, size = parts[:3]
    if "strings" in parts[3:]:
        return ["limit/xxh3/strings"]
    # The limit has the row's target, pages and probe set; hit rates and threads have no limit of their own.
    detail = "".join("/" + part for part in parts[3:] if DETAIL.match(part))
    stores = operation in ("count_add", "count_remove") and size == "512MiB"
    names = []
    for limit in ["hash_rmw", "hash_touch"] if stores else ["hash_touch"]:
        names += [f"limit/{limit}/{size}/on:{layout}"] if not detail else []
        names += [f"limit/{limit}/{size}{detail}", f"limit/{limit}/{size}"]
    return list(dict.fromkeys(names))


def limit_of(name, rows):
    """The limit that a row is divided by, among `rows`; None: there is none."""
    return next((limit for limit in limit_names(name) if limit in rows), None)


def read_json(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not JSON, and not a build directory or program: {error}") from error


class Results:
    """ns[row]: ns per key of its repetitions; errors[row]: the message of a row that failed; context.

    Rows with a "process" are of a file that bench_compare.sh --record wrote: ns[row] then has the fastest repetition of
    each process. processes: how many there are.
    """

    def __init__(self, data, source):
        self.ns = {}
        self.errors = {}
        self._fastest = {}  # by row and process
        try:
            self.context = dict(data["context"])
            for row in data["benchmarks"]:
                self._add(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"{source}: not the JSON of bloomline_bench: {error!r}") from error
        self.processes = max(map(len, self._fastest.values()), default=1)
        self.ns.update({row: list(fastest.values()) for row, fastest in self._fastest.items()})
        if not self.ns and not self.errors:
            raise BadInput(f"{source}: holds no rows with items_per_second")

    def _add(self, row):
        # Aggregates are no measurements: they would count twice, or, alone, have no spread.
        if row.get("run_type") == "aggregate":
            return
        name = row.get("run_name", row["name"])
        if row.get("error_occurred"):
            self.errors[name] = row.get("error_message", "failed")
            return
        speed = row.get("items_per_second")
        if speed is None:
            return
        if not (isinstance(speed, (int, float)) and math.isfinite(speed) and speed > 0):
            raise ValueError(f"{name}: items_per_second = {speed}")
        if "process" in row:
            fastest = self._fastest.setdefault(name, {})
            fastest[row["process"]] = min(1e9 / speed, fastest.get(row["process"], math.inf))
        else:
            self.ns.setdefault(name, []).append(1e9 / speed)

    @staticmethod
    def read(path):
        return Results(read_json(path), path)
