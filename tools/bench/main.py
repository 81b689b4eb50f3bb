"""Called by tools/bench.sh, whose -h says what it does."""

import argparse
import datetime
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
import document  # noqa: E402
import plan  # noqa: E402
from measure import measure  # noqa: E402
from results import BadInput  # noqa: E402
from view import View  # noqa: E402


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def machine_name(context):
    """'amd-epyc-26-2-1': one name per kind of CPU, none of a host."""
    name = slug(re.sub(r"\((r|tm)\)|\bcpu\b|@.*", " ", context.get("cpu", "unknown").lower()))
    model = slug(context.get("cpu_family_model_stepping", ""))
    return f"{name}-{model}" if model and "unknown" not in model else name


def free_path(folder, date):
    """results/<machine>/<date>.json; a second result of the day does not replace the first."""
    number, path = 1, os.path.join(folder, f"{date}.json")
    while os.path.exists(path):
        number += 1
        path = os.path.join(folder, f"{date}-{number}.json")
    return path


def newest_of_each_machine(results, shown):
    """Views of the newest result in each folder under `results`; a result of --full before one of --quick."""
    views = []
    for folder in sorted(glob.glob(os.path.join(results, "*", ""))):
        candidates = []
        for path in glob.glob(os.path.join(folder, "*.json")):
            try:
                view = View.read(path)
            except BadInput as error:
                print(f"bench.sh: left out: {error}", file=sys.stderr)
                continue
            view.context.setdefault("machine", os.path.basename(os.path.dirname(path)))
            candidates.append((view.context.get("mode") == "full", view.context.get("date", ""), view))
        if candidates:
            views.append(max(candidates, key=lambda c: c[:2])[2])
    names = {view.context["machine"] for view in views}
    return views if shown.context.get("machine") in names else [shown, *views]


def command_of(context):
    return f"tools/bench.sh --{context.get('mode', 'full')}"


def parse():
    parser = argparse.ArgumentParser(prog="bench.sh", usage="tools/bench.sh [--quick | --full] [OPTION...]; -h explains")
    parser.add_argument("--root", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mode", choices=sorted(plan.MODES), default="quick")
    parser.add_argument("--from", dest="source", metavar="RESULT.json")
    parser.add_argument("--machine")
    parser.add_argument("--results")
    parser.add_argument("--report")
    parser.add_argument("--plots")
    arguments = parser.parse_args()
    arguments.results = arguments.results or os.path.join(arguments.root, "results")
    arguments.report = arguments.report or os.path.join(arguments.root, "BENCHMARKS.md")
    arguments.plots = arguments.plots or os.path.join(arguments.root, "docs", "benchmarks")
    if arguments.machine is not None and slug(arguments.machine) != arguments.machine:
        parser.error(f"--machine '{arguments.machine}': small letters, digits and single '-' are allowed, as in "
                     f"'{slug(arguments.machine) or 'my-machine'}'")
    return arguments


def run(arguments):
    """Measures; the path of the result, and whether all rows passed their checks."""
    date = datetime.date.today().isoformat()
    os.makedirs(arguments.results, exist_ok=True)
    partial = os.path.join(arguments.results, "unfinished.json")
    print(f"bench.sh: measuring; what there is so far is in {partial}", file=sys.stderr)
    gatherer = measure(arguments.program, plan.MODES[arguments.mode](), partial, arguments.mode)
    name = arguments.machine or machine_name(gatherer.context)
    gatherer.write(partial, machine=name)
    folder = os.path.join(arguments.results, name)
    os.makedirs(folder, exist_ok=True)
    path = free_path(folder, date)
    os.replace(partial, path)
    for row, message in gatherer.errors.items():
        print(f"bench.sh: FAILED {row}: {message}", file=sys.stderr)
    for row, message in gatherer.skipped.items():
        print(f"bench.sh: not measured: {row}: {message}", file=sys.stderr)
    return path, not gatherer.errors


def main():
    arguments = parse()
    try:
        document.check(arguments.report)  # before half an hour, not after it
        path, passed = (arguments.source, True) if arguments.source else run(arguments)
        view = View.read(path)
        print(f"bench.sh: result: {os.path.relpath(path)}")
        if not passed:
            print(f"bench.sh: rows failed their checks; {os.path.relpath(arguments.report)} is as it was", file=sys.stderr)
            return 1
        document.regenerate(arguments.report, arguments.plots, view, command_of(view.context),
                            newest_of_each_machine(arguments.results, view))
        print(f"bench.sh: report: {os.path.relpath(arguments.report)}, plots in {os.path.relpath(arguments.plots)}")
        return 0
    except BadInput as error:
        print(f"bench.sh: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"bench.sh: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nbench.sh: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
