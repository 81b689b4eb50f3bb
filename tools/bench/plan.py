"""What tools/bench.sh measures: stages of processes of bloomline_bench.

Google Benchmark widens what it measures little by little to `seconds`; short repetitions in several processes beat long
ones in one: some fall between the disturbances of a shared machine, and where a process' memory came to lie, which can
make a row a fifth slower, differs from process to process. tools/bench_compare.sh wants eight processes or more of the
rows that it compares.
"""

from typing import NamedTuple

SMALL = "(32KiB|1MiB|16MiB)"
PLAIN_LAYOUTS = ["split512", "word64k5", "split256", "sector512z2k6", "sector512z4k8", "line512k7"]
COUNTING_LAYOUTS = ["counting4", "counting8"]
BASELINES = "(unordered_set|classic_plain|split256_plain|libbloom|leveldb)"


class Stage(NamedTuple):
    title: str
    pattern: str  # --benchmark_filter; the rows' limits come along
    processes: int
    repetitions: int
    seconds: float  # per repetition, at least
    options: tuple = ()


def quick():
    """Under three minutes."""
    return [
        Stage("filters in cache", r"^(lookup_batch|lookup_one|insert_batch|count_[a-z]+)/[a-z0-9]+/(32KiB|1MiB)$", 8, 3,
              0.005),
        Stage("filters of 16 MiB", r"^(lookup_batch|lookup_one|insert_batch|count_[a-z]+)/[a-z0-9]+/16MiB$", 2, 4, 0.005),
        Stage("the same on other targets", r"^(lookup_batch|count_lookup)/[a-z0-9]+/1MiB/target:[A-Z0-9_]+$", 2, 5, 0.005),
        Stage("every k", r"^lookup_batch/[a-z0-9]+k[0-9]+/1MiB$", 3, 4, 0.005, ("--all",)),
        Stage("other filters", rf"^[a-z_]+/{BASELINES}/1MiB$", 2, 4, 0.005),
        Stage("other filters of 16 MiB", rf"^lookup_one/{BASELINES}/16MiB$", 1, 4, 0.005),
        Stage("strings", r"/strings$", 1, 5, 0.01),
        Stage("every size up to 128 MiB", r"/(32|64|128|256|512)KiB/sweep$|/(1|2|4|8|16|32|64|128)MiB/sweep$", 2, 4, 0.02),
        Stage("threads", r"^lookup_batch/split512/(1MiB|16MiB)/real_time/threads:[0-9]+$", 2, 5, 0.05),
        Stage("readers beside writers", r"^concurrent/", 1, 3, 0.2),
    ]


def full():
    """Under thirty minutes, half of them filling filters of 512 MiB. Takes 6 GiB of memory."""
    stages = [
        Stage("filters in cache", rf"^limit/hash(_rmw/{SMALL})?$|^[a-z_]+/({'|'.join(PLAIN_LAYOUTS + COUNTING_LAYOUTS)})/"
              rf"{SMALL}(/hit[0-9]+)?$", 9, 5, 0.005),
        Stage("the same on other targets",
              r"^(lookup_batch|lookup_one|insert_batch|count_[a-z]+)/[a-z0-9]+/(32KiB|1MiB)/target:[A-Z0-9_]+$", 4, 6, 0.005),
        Stage("every k", r"^(lookup|insert)_batch/[a-z0-9]+k[0-9]+/1MiB$", 5, 6, 0.005, ("--all",)),
        Stage("other filters", rf"^[a-z_]+/{BASELINES}/{SMALL}$", 3, 5, 0.005),
        Stage("other filters, 512 MiB", rf"^[a-z_]+/{BASELINES}/512MiB$", 1, 3, 0.01),
        Stage("strings", r"/strings(/hit[0-9]+)?$", 3, 8, 0.01),
        Stage("small pages", r"^((lookup|insert)_batch/split512|limit/hash_[a-z]+)/512MiB(/pages:4k)?$", 2, 8, 0.05),
        Stage("every size", r"/sweep$", 2, 4, 0.03),
    ]
    for layout in PLAIN_LAYOUTS + COUNTING_LAYOUTS:
        stages.append(Stage(f"{layout}, 512 MiB", rf"^(lookup|insert|select|count)_[a-z]+/{layout}/512MiB(/hit[0-9]+)?$", 2, 5,
                            0.05))
    stages += [
        Stage("builds, 512 MiB", r"^build/[a-z0-9]+/512MiB$", 1, 2, 0.01),
        Stage("threads", r"^(lookup_batch/split512|count_lookup/counting4)/[0-9A-Za-z]+/real_time/threads:[0-9]+$", 3, 5, 0.05,
              ("--all",)),
        Stage("a pool of threads", r"/pool:[0-9]+/", 2, 3, 0.05),
        Stage("readers beside writers", r"/shared$|^concurrent/", 3, 5, 0.2),
    ]
    return stages


MODES = {"quick": quick, "full": full}
