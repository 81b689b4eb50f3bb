"""How much slower a row became, and how sure that is. Imported by tools/bench_compare.py and its tests.

Noise only ever adds time, and on a shared machine often half as much again, for seconds. Means and medians then tell
of the neighbours. What is compared is therefore the mean of each row's fastest measurements, divided by that of
its limit; the interval is from a bootstrap.
"""

import math
import random
import statistics

# Smallest numbers of measurements on which a verdict is given. Below, a bootstrap says little.
MIN_ROUNDS = 5
MIN_REPETITIONS = 8
RESAMPLES = 200  # enough for a standard error


def low(values):
    """The mean of the fastest three of ten: of little variance, and blind to what the slow ones suffered."""
    fastest = sorted(values)[:max(1, round(0.3 * len(values)))]
    return sum(fastest) / len(fastest)


def _log_ratio(statistic, series):
    old, old_limit, new, new_limit = map(statistic, series)
    return math.log(new * old_limit / (old * new_limit))


class Change:
    """log of new / old of one row, each relative to its limit, where it has one.

    estimate: of the low means; smallest: of the minima; interval: each end is passed with a chance of `tail`.
    """

    def __init__(self, series, tail, paired, seed=1):
        """`series`: old, old's limit, new, new's limit (limits: [1.0] for none).

        paired: measurement i of all four was taken in the same round, and rounds are drawn; else all are independent.
        """
        self.estimate = _log_ratio(low, series)
        self.smallest = _log_ratio(min, series)
        self.tail = tail
        self._series = series
        self._paired = paired
        self._seed = seed
        self._interval = None

    def _variance(self):
        choices = random.Random(self._seed).choices
        if self._paired:
            rounds = range(len(self._series[0]))
            drawn = (choices(rounds, k=len(rounds)) for _ in range(RESAMPLES))
            return statistics.variance(
                _log_ratio(low, [[values[i] for i in some] if len(values) > 1 else values for values in self._series])
                for some in drawn)
        return sum(statistics.variance(math.log(low(choices(values, k=len(values)))) for _ in range(RESAMPLES))
                   for values in self._series)

    @property
    def interval(self):
        """estimate +- z times the bootstrap's standard error, which tests/bench_compare_test.py holds against noise."""
        if self._interval is None:
            half = statistics.NormalDist().inv_cdf(1 - self.tail) * math.sqrt(self._variance())
            self._interval = (self.estimate - half, self.estimate + half)
        return self._interval

    def slower(self, threshold):
        """The whole interval and the ratio of the minima lie beyond `threshold`, a log ratio."""
        return min(self.estimate, self.smallest) > threshold and self.interval[0] > threshold

    def suspicious(self, threshold):
        return min(self.estimate, self.smallest) > threshold

    def faster(self, threshold):
        return max(self.estimate, self.smallest) < -threshold and self.interval[1] < -threshold


def geometric_mean(changes):
    return math.exp(sum(change.estimate for change in changes) / len(changes)) if changes else math.nan
