"""E ln N! of sums N of independent coins, which the price of soft memberships is made of.

Most clusters need moments alone; for small clusters of uncertain items the distribution itself is made.
"""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma

from gingham.arrays import Floats, Ints
from gingham.engine.project import STEP_BYTES, row_blocks
from gingham.engine.threads import over_blocks

TINY = 1e-60  # memberships below add nothing to any sum
POWERS = 5  # of memberships that are summed
CLOSE = 1e-6  # nats to which the price of a cluster is right
# Probabilities of coins whose sum follows from power sums, so many of them, and of which the first POWERS are enough.
RARE, RARE_POWERS, FAINT = 2.0**-3, 24, 2.0**-10


class ClusterSums(NamedTuple):
    """A clustering and the sums over its items that prices are made of."""

    assign: Floats  # (n, m)
    powers: Floats  # (POWERS, m): Σ_x q(c|x)^j for j = 1, 2, …
    neg_entropy: float  # Σ_x Σ_c q ln q


Memberships = Floats | ClusterSums  # (n, m), or with their sums


def cluster_sums(assign: Memberships) -> ClusterSums:
    """One pass over memberships whose sums are not known, in blocks that stay in cache, on all cores."""
    if isinstance(assign, ClusterSums):
        return assign
    assign = np.asarray(assign)
    n, m = assign.shape

    def run(block: tuple[int, int]) -> tuple[Floats, float]:
        q = np.asarray(assign[block[0] : block[1]], dtype=np.float64)
        q = np.where(q > TINY, q, 0.0)  # powers of less would be numbers that processors are slow with
        power, powers = q.copy(), np.empty((POWERS, m))
        for j in range(POWERS):
            powers[j] = power.sum(axis=0)
            power *= q
        np.log(np.maximum(q, TINY, out=power), out=power)
        power *= q  # not by BLAS, whose other threads would wait at the cost of a core
        return powers, float(power.sum())

    parts = list(over_blocks(run, row_blocks(n, m, STEP_BYTES)))
    return ClusterSums(assign, np.sum([powers for powers, _ in parts], axis=0), sum(entropy for _, entropy in parts))


def expected_log_factorials(assign: Memberships) -> Floats:
    """E ln N_c! for each cluster, N_c the number of items drawn into it, Poisson-binomial(q(c|·)), shape (m,).

    ln x! has even derivatives above zero, so its Taylor polynomials of odd degree lie below it everywhere: the one of
    degree 5 at E N_c, which needs moments alone, gives a price that is never too low. It is taken where it is right to
    `CLOSE` nats, that is for all but small clusters of uncertain items; for these the distribution itself is made.
    """
    of = cluster_sums(assign)
    mean, *moments = _central_moments(of.powers)
    derivatives = [polygamma(k, mean + 1.0) for k in (1, 2, 3, 4, 5)]
    result = gammaln(mean + 1.0)
    for k, (derivative, moment) in enumerate(zip(derivatives, moments), start=2):
        result = result + derivative * moment / factorial(k)
    variance = np.maximum(moments[0], 0.0)
    # Cumulants of coins are at most their variance, so the sixth moment is at most σ² + 25 σ⁴ + 15 σ⁶. Twice what it
    # makes at the mean is enough where ten standard deviations below the mean are still far from zero.
    sixth = variance + 25.0 * variance**2 + 15.0 * variance**3
    rest = 2.0 * derivatives[4] * sixth / factorial(6)
    small = np.flatnonzero((variance > 0) & ((rest > CLOSE) | (20.0 * np.sqrt(variance) > mean)))
    if len(small):
        result[small] = _of_distributions(of.assign[:, small], of.powers[:, small])
    return np.asarray(result)


def poisson_binomial(probabilities: Floats) -> Floats:
    """P(N_c = 0), …, P(N_c = n) of sums N_c of independent coins, shape (m, n + 1), by divide and conquer.

    Column c of ``probabilities`` (n, m) holds the success probabilities of the n coins of sum c.
    """
    q = np.asarray(probabilities, dtype=np.float64)
    n, m = q.shape
    if n == 0:
        return np.ones((m, 1))
    block = 32  # coins put together one by one; longer sums are convolved in pairs by Fourier transform
    n_blocks = 1 << max(0, (-(-n // block) - 1).bit_length())
    from scipy.fft import irfft, next_fast_len, rfft  # takes a while to import

    padded = np.zeros((n_blocks * block, m))
    padded[:n] = q
    coins = padded.reshape(n_blocks, block, m).transpose(1, 2, 0)[..., None]  # (block, m, n_blocks, 1)
    distributions = np.zeros((m, n_blocks, block + 1))
    distributions[..., 0] = 1.0
    for j in range(block):
        moved = coins[j] * distributions[..., :-1]
        distributions *= 1 - coins[j]
        distributions[..., 1:] += moved
    while distributions.shape[1] > 1:
        length = 2 * (distributions.shape[2] - 1)  # highest count of a pair
        period = next_fast_len(length + 1, real=True)
        spectrum = rfft(distributions, n=period, axis=2)
        distributions = irfft(spectrum[:, 0::2] * spectrum[:, 1::2], n=period, axis=2)[..., : length + 1]
        np.maximum(distributions, 0.0, out=distributions)
        # High counts that are out of reach, and the transform's noise there, are cut off. That makes
        # E ln N! smaller and the divergence larger, never the other way round.
        reachable = np.flatnonzero(distributions.max(axis=(0, 1)) > 1e-14)
        distributions = distributions[..., : reachable[-1] + 1]
    width = min(distributions.shape[2], n + 1)
    result: Floats = np.zeros((m, n + 1))
    result[:, :width] = distributions[:, 0, :width]
    return result / np.maximum(result.sum(axis=1, keepdims=True), 1.0)


def _central_moments(powers: Floats) -> list[Floats]:
    """Mean and central moments 2 to 5 of a sum of coins from the power sums of their probabilities, each (m,)."""
    s1, s2, s3, s4, s5 = powers
    k2, k3 = s1 - s2, s1 - 3 * s2 + 2 * s3
    k4, k5 = s1 - 7 * s2 + 12 * s3 - 6 * s4, s1 - 15 * s2 + 50 * s3 - 60 * s4 + 24 * s5
    return [s1, k2, k3, k4 + 3 * k2**2, k5 + 10 * k2 * k3]


def _of_distributions(q: Floats, powers: Floats) -> Floats:
    """E ln N_c! of few clusters by the distribution of N_c, shape (m,); ``powers`` are their sums over all items."""
    m = q.shape[1]
    columns, items = np.nonzero(q.T > FAINT)
    coins = q[items, columns].astype(np.float64)
    sure = np.bincount(columns[coins == 1.0], minlength=m)
    open_, few = (coins >= RARE) & (coins < 1.0), coins < RARE
    likely, at = coins[open_], columns[open_]
    # What neither is sure nor likely is rare; faint coins count in the first power sums alone.
    sums = _power_sums(coins[few], columns[few], RARE_POWERS, m)
    sums[:POWERS] = np.maximum(powers[:POWERS] - sure - _power_sums(likely, at, POWERS, m), 0.0)
    n_open = np.bincount(at, minlength=m)
    place = np.arange(len(at)) - (np.cumsum(n_open) - n_open)[at]  # of a coin among those of its cluster
    table = np.zeros((int(n_open.max(initial=0)), m))
    table[place, at] = likely
    result = np.empty(m)
    # Clusters of about equal support go together.
    order = np.argsort(n_open, kind="stable")
    start = 0
    while start < m:
        longest = int(n_open[order[start]])
        stop = start + 1
        while stop < m and n_open[order[stop]] <= max(64, 1.3 * longest) and stop - start < 64:
            stop += 1
        group = order[start:stop]
        distributions = poisson_binomial(table[: int(n_open[group].max()), group])
        for c, distribution, rare in zip(group, distributions, rare_distribution(sums[:, group])):
            distribution = np.convolve(distribution[: np.flatnonzero(distribution)[-1] + 1], rare)
            result[c] = distribution @ gammaln(sure[c] + np.arange(len(distribution)) + 1.0)
        start = stop
    return result


def _power_sums(values: Floats, columns: Ints, n_powers: int, m: int) -> Floats:
    """Σ value^k of each column for k = 1, 2, …, shape (n_powers, m)."""
    sums, power = np.empty((n_powers, m)), values.copy()
    for k in range(n_powers):
        sums[k] = np.bincount(columns, power, minlength=m)
        power *= values
    return sums


def rare_distribution(powers: Floats) -> Floats:
    """P(0), P(1), … of sums of rare coins with these power sums (K, …) of their probabilities, as far as they reach.

    The generating function of one is exp Σ_k (−1)^(k+1) s_k (z − 1)^k/k.
    """
    from scipy.fft import irfft, next_fast_len  # takes a while to import

    powers = np.asarray(powers, dtype=np.float64)
    most = float(powers[0].max(initial=0.0))
    last = int(most + 12.0 * most**0.5) + 40
    period = next_fast_len(last + 1, real=True)
    turned = 1.0 - np.exp(-2j * np.pi * np.arange(period // 2 + 1) / period)
    exponent = np.zeros((*powers.shape[1:], len(turned)), dtype=np.complex128)
    for k in range(len(powers), 0, -1):
        exponent = (exponent + powers[k - 1, ..., None] / k) * turned
    distribution = np.maximum(irfft(np.exp(-exponent), n=period)[..., : last + 1], 0.0)
    return distribution / np.maximum(distribution.sum(axis=-1, keepdims=True), 1.0)
