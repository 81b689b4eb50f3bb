"""The tables of BENCHMARKS.md, in Markdown. Each function returns a list of lines, empty where nothing was measured."""

import re

from view import BASELINES, COUNTING_LAYOUTS, LAYOUTS, SIZES, UNITS, size_name, skyline, spaced


def number(value):
    """Three digits."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def percent(fpr):
    return "exact" if fpr == 0 else f"{100 * fpr:.3g} %" if fpr >= 1e-5 else f"{100 * fpr:.1e} %"


def table(header, rows, left=1):
    """The first `left` columns to the left, the others to the right; columns without any value are left out."""
    used = [i for i in range(len(header)) if i < left or any(row[i] for row in rows)]
    if not rows or len(used) <= left:
        return []
    lines = ["| " + " | ".join(header[i] for i in used) + " |",
             "|" + "|".join("---" if i < left else "--:" for i in used) + "|"]
    return lines + ["| " + " | ".join(row[i] for i in used) + " |" for row in rows] + [""]


def cell(view, row):
    """ns per key, and the ratio to the limit behind it."""
    if row not in view.ns:
        return ""
    ratio = view.ratio(row)
    return number(view.ns[row]) + (f" ({ratio:.2f})" if ratio is not None else "")


def by_size(view, operation, layouts, limit="limit/hash_touch", detail=""):
    header = ["layout", "FPR"] + [spaced(size) for size in SIZES]
    rows = []
    for layout in layouts:
        names = [f"{operation}/{layout}/{size}{detail}" for size in SIZES]
        fpr = next((view.fpr[name] for name in names if name in view.fpr), None)
        rows.append([f"`{layout}`", percent(fpr) if fpr is not None else ""] + [cell(view, name) for name in names])
    rows = [row for row in rows if any(row[2:])]
    if rows and limit:
        rows.append(["*limit*", ""] + [number(view.ns.get(f"{limit}/{size}")) for size in SIZES])
    return table(header, rows)


def inserts(view):
    rows = []
    for operation, name in (("insert_batch", "a batch"), ("insert_one", "one by one"), ("build", "a whole filter")):
        for layout in LAYOUTS:
            names = [f"{operation}/{layout}/{size}" for size in SIZES]
            if any(row in view.ns for row in names):
                rows.append([name, f"`{layout}`"] + [cell(view, row) for row in names])
    return table(["inserting", "layout"] + [spaced(size) for size in SIZES], rows, left=2)


def counting(view):
    rows = []
    for operation, name in (("count_lookup", "look up"), ("count_add", "add"), ("count_remove", "remove")):
        for layout in COUNTING_LAYOUTS:
            names = [f"{operation}/{layout}/{size}" for size in SIZES]
            if any(row in view.ns for row in names):
                rows.append([name, f"`{layout}`"] + [cell(view, row) for row in names])
    return table(["operation", "layout"] + [spaced(size) for size in SIZES], rows, left=2)


def memory_of(row):
    """The rows of other filters have 'N KiB' as their label."""
    match = re.fullmatch(r"(\d+) KiB", row.get("label", ""))
    return size_name(int(match[1]) * UNITS["KiB"]) if match else ""


def others(view, size):
    """Other filters of one size, and split512 and line512 beside them."""
    rows = []
    for layout in ("split512", "line512k7"):
        batch = f"lookup_batch/{layout}/{size}"
        if batch in view.ns:
            rows.append([f"bloomline `{layout}`", percent(view.fpr[batch]), spaced(size),
                         number(view.ns.get(f"insert_batch/{layout}/{size}", view.ns.get(f"build/{layout}/{size}"))),
                         number(view.ns.get(f"lookup_one/{layout}/{size}")), number(view.ns[batch])])
    reference = view.ns.get(f"lookup_batch/split512/{size}")
    found = False
    for name, title in BASELINES.items():
        lookup = f"lookup_one/{name}/{size}"
        if lookup not in view.ns:
            continue
        found = True
        insert = view.ns.get(f"insert_one/{name}/{size}", view.ns.get(f"build/{name}/{size}"))
        times = f" ({view.ns[lookup] / reference:.1f} x split512)" if reference else ""
        rows.append([title, percent(view.fpr.get(lookup, 0)), memory_of(view.rows[lookup]), number(insert),
                     number(view.ns[lookup]) + times, ""])
    header = ["", "FPR", "memory", "insert", "look up one by one", "look up in batches"]
    return table(header, rows) if found else []


def hit_rates(view):
    rows = []
    for operation in ("lookup_batch", "lookup_one", "select_batch"):
        for layout in ("split512", "word64k5", "line512k7"):
            base = f"{operation}/{layout}/1MiB"
            names = [base + "/hit0", base, base + "/hit100"]
            if all(name in view.ns for name in names):
                rows.append([f"`{operation}`", f"`{layout}`"] + [number(view.ns[name]) for name in names])
    return table(["operation", "layout", "0 % members", "50 %", "100 %"], rows, left=2)


def targets(view):
    header = ["1 MiB, look up in batches"] + [f"`{target}`" for target in view.targets]
    rows = []
    for layout in LAYOUTS + COUNTING_LAYOUTS:
        operation = "count_lookup" if layout in COUNTING_LAYOUTS else "lookup_batch"
        rows.append([f"`{layout}`"] +
                    [cell(view, view.of_target(f"{operation}/{layout}/1MiB", target)) for target in view.targets])
    rows = [row for row in rows if any(row[2:])]
    if rows:
        rows.append(["*limit*"] + [number(view.ns.get(view.of_target("limit/hash_touch/1MiB", target)))
                                   for target in view.targets])
    return table(header, rows)


def threads(view):
    """Million keys per second, all threads together."""
    series = [(f"look up, `split512`, {spaced(size)}", view.thread_rows(f"lookup_batch/split512/{size}"))
              for size in SIZES]
    series += [(f"look up, `counting4`, {spaced(size)}", view.thread_rows(f"count_lookup/counting4/{size}"))
               for size in SIZES]
    counts = sorted({count for _, rows in series for count in rows})
    rows = []
    for title, of_threads in series:
        if len(of_threads) > 1:
            one = view.ns[of_threads[min(of_threads)]]
            rows.append([title] + [f"{1e3 / view.ns[of_threads[count]]:.0f} ({one / view.ns[of_threads[count]]:.2f})"
                                   if count in of_threads else "" for count in counts])
    return table(["million keys per second (times one thread)"] + [str(count) for count in counts], rows)


def pools(view):
    rows = []
    for operation, title in (("lookup_batch", "`MayContainBatch`"), ("build", "`InsertBulk`, an empty filter")):
        pooled = view.thread_rows(f"{operation}/split512/512MiB", "pool")
        rows += [[title, str(count), number(view.ns[row])] for count, row in pooled.items()]
    return table(["`ThreadPool`, `split512`, 512 MiB", "threads", "ns per key"], rows)


def concurrent(view):
    row = next((name for name in view.ns if name.startswith("concurrent/")), None)
    if row is None:
        return []
    of_row = view.rows[row]
    return [f"`ConcurrentFilter` ({spaced(row.split('/')[2])}), two threads inserting new keys and two looking keys up at "
            f"the same time: {of_row['inserts_per_second'] / 1e6:.0f} million inserts and "
            f"{of_row['lookups_per_second'] / 1e6:.0f} million lookups per second.", ""]


def best_layouts(view):
    rows = [[f"`{name}`", percent(fpr), number(ns)] for name, ns, fpr in skyline(view.points())]
    return table(["layout with k", "FPR", "ns per key"], rows)


def strings(view):
    rows = []
    for size in SIZES:
        row = f"lookup_batch/split512/{size}/strings"
        plain = f"lookup_batch/split512/{size}"
        if row in view.ns and "limit/xxh3/strings" in view.ns:
            rows.append([spaced(size), number(view.ns[row]), number(view.ns["limit/xxh3/strings"]),
                         number(view.ns.get(plain))])
    return table(["filter", "look up strings", "XXH3 of them alone", "look up integers"], rows)


def pages(view):
    rows = []
    for operation, name in (("lookup_batch", "look up"), ("insert_batch", "insert")):
        row = f"{operation}/split512/512MiB"
        if row + "/pages:4k" in view.ns and row in view.ns:
            rows.append([name, number(view.ns[row]), number(view.ns[row + "/pages:4k"])])
    return table(["`split512`, 512 MiB", "huge pages", "4 KiB pages"], rows)


def machine(view, command):
    context = view.context
    caches = ", ".join(f"{name} {int(context[key]) / UNITS[unit]:g} {unit}" for name, key, unit in
                       (("L1d", "l1d_bytes", "KiB"), ("L2", "l2_bytes", "MiB"), ("L3", "l3_bytes", "MiB"))
                       if context.get(key, "0").isdigit() and int(context.get(key, "0")))
    seconds = context.get("seconds")
    rows = [
        ("CPU", f"{context.get('cpu', 'unknown')} (family/model/stepping "
                f"{context.get('cpu_family_model_stepping', 'unknown')}), {context.get('num_cpus', '?')} hardware threads, "
                f"{context.get('numa_nodes', '?')} NUMA node{'' if context.get('numa_nodes') == '1' else 's'}"),
        ("Caches", caches),
        ("Target", f"`{view.target}`"),
        ("System", f"{context.get('kernel', 'unknown')}, transparent huge pages "
                   f"{context.get('transparent_huge_pages', 'unknown')}, governor {context.get('governor', 'unknown')}"),
        ("Compiler", f"{context.get('compiler', 'unknown')}, `{context.get('flags', 'unknown')}`"),
        ("Commit", f"`{context.get('commit', 'unknown')}`, version {context.get('bloomline_version', 'unknown')}"),
        ("Run", f"{context.get('date', 'unknown')[:10]}, `{command}`, {context.get('processes', 1)} processes"
                + (f", {round(seconds / 60)} minutes" if seconds else "")),
    ]
    return ["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in rows if value] + [""]


def machines(views):
    """One line for each of several machines."""
    rows = []
    for view in views:
        rows.append([f"{view.context.get('machine', view.context.get('cpu', 'unknown'))}", f"`{view.target}`"] +
                    [number(view.ns.get("limit/hash_touch/1MiB"))] +
                    [cell(view, f"lookup_batch/split512/{size}") for size in SIZES] +
                    [cell(view, "insert_batch/split512/1MiB"), cell(view, "count_add/counting4/1MiB")])
    header = ["machine", "target", "limit 1 MiB"] + [f"`split512` {spaced(size)}" for size in SIZES]
    return table(header + ["insert 1 MiB", "`counting4` add 1 MiB"], rows, left=2)
