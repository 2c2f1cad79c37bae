"""Every certificate of the library on planted problems, against posteriors that try to break it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from coverage_problems import (
    ADVERSARIES,
    DELTA,
    MANY,
    Planted,
    Tally,
    adversary,
    against,
    best_of_many,
    deepest,
    flipped,
    made_up,
    soft,
    ups,
)

from gingham.certificates import (
    Assumption,
    bounds,
    certify,
    certify_predictions,
    held_out_part,
    transductive,
    whole_population,
)
from gingham.certificates.evidence import Evidence, collect
from gingham.certificates.split import certify_prior
from gingham.core.problem import Posterior

CANDIDATES = 4096  # finished predictors among which held-out observations decide
STATED = Assumption("Labels are among those stated.", "given")


def broken_bounds(evidence: Evidence) -> dict[str, float]:
    """Bounds with a mistake in them: a harness that cannot see these sees nothing."""
    law, price, n = evidence.distribution, evidence.prices["exact"].total, evidence.n_observations
    surely = 1 - 1e-12  # δ forgotten: ln 1/δ = 0
    return {
        "broken: kl, half the KL, no δ": evidence.in_unit(bounds.maurer(law, price / 2, n, surely).value),
        "broken: log-wealth, half the KL, no δ": evidence.in_unit(bounds.log_wealth(law, price / 2, n, surely).value),
        "broken: kl without KL": evidence.in_unit(bounds.maurer(law, 0.0, n, DELTA).value),
    }


def in_sample(problem: Planted, n_samples: int, seed: int) -> Tally:
    """Bounds for all posteriors, from above and below, the mean prediction, and the gain, on the fitted sample."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    numbers = problem.cell.alphabet.numbers
    best_constant = min(problem.loss_of(np.full(len(problem.law), float(c))) for c in numbers)
    for turn in range(n_samples):
        counts = problem.draw(rng)
        sample = problem.sample(counts)
        name = ADVERSARIES[turn % 3]
        posterior = adversary(name, problem, counts, rng)
        true = problem.loss(posterior)
        certificate = certify(posterior, sample, population=problem.population)
        for row in certificate.compare(together=False):
            tally.above(row.bound, name, true, row.value)
        for broken, value in broken_bounds(certificate.evidence).items():
            tally.above(broken, name, true, value)
        tally.above("log-wealth, mean", name, problem.loss_of(posterior.predict(problem.codes)), certificate.value)
        gain = certify(posterior, sample, bound="gain")
        tally.above("gain, constant", name, true - best_constant, gain.value)
        law, price = gain.evidence.distribution, gain.evidence.prices["exact"].total
        naive = gain.evidence.in_unit(bounds.log_wealth(law, price / 2, gain.n_observations, 1 - 1e-12).value)
        tally.above("broken: gain, half the KL, no δ", name, true - best_constant, naive)
        opposite = flipped(posterior)
        evidence, below = collect(opposite, sample), -problem.loss(opposite)
        for bound in (bounds.log_wealth_lower, bounds.maurer_lower):
            least = bound(evidence.distribution, evidence.prices["exact"].total, evidence.n_observations, DELTA).value
            title = "log-wealth, lower" if bound is bounds.log_wealth_lower else "kl, lower"
            tally.above(title, name, below, -evidence.in_unit(least))
        pair = [posterior, problem.posterior(ups(against(problem, deepest(problem, counts, rng))))]
        committee = SimpleNamespace(members_=[SimpleNamespace(posterior_=p) for p in pair])
        true = float(np.mean([problem.loss(p) for p in pair]))
        tally.above("log-wealth, committee", name, true, certify(committee, sample).value)
    return tally


def gain(problem: Planted, n_samples: int, seed: int) -> Tally:
    """The gain over every constant, where labels are skewed and items come once: half of KL(Q‖P) is too little."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    numbers = problem.cell.alphabet.numbers
    best_constant = min(problem.loss_of(np.full(len(problem.law), float(c))) for c in numbers)
    for turn in range(n_samples):
        counts = problem.draw(rng)
        strength = (1.0, 2.0)[turn % 2]
        name = ("tilted", "tilted twice")[turn % 2]
        posterior = made_up(problem, counts, strength)
        found = certify(posterior, problem.sample(counts), bound="gain")
        true = problem.loss(posterior) - best_constant
        tally.above("gain, constant", name, true, found.value)
        law, price = found.evidence.distribution, found.evidence.prices["exact"].total
        naive = found.evidence.in_unit(bounds.log_wealth(law, price / 2, found.n_observations, 1 - 1e-12).value)
        tally.above("broken: gain, half the KL, no δ", name, true, naive)
    return tally


def fitted(problem: Planted, counts: np.ndarray, rng: np.random.Generator) -> Posterior:
    """The deepest fit of another part of the data, soft as split priors want it."""
    return problem.posterior(soft(problem, counts, deepest(problem, counts, rng)))


def holdout(problem: Planted, n_samples: int, seed: int) -> Tally:
    """Finished predictors on tuples they have not seen: of one model, of committees, the best of many."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    letters = problem.cell.alphabet
    planted = problem.posterior(ups(list(problem.signs)))
    for turn in range(n_samples):
        other, counts = problem.draw(rng), problem.draw(rng, problem.n_observations // 2)
        sample = problem.sample(counts)
        at, labels = np.nonzero(counts)
        weights, y = counts[at, labels], letters.values[labels]
        name = ("fitted on the complement", "the truth")[turn % 2]
        model = planted if turn % 2 else fitted(problem, other, rng)
        for rule in ("gibbs", "mean", "median", "mode"):
            value = certify(model, sample, bound="holdout", predictor=rule).value
            true = problem.loss(model) if rule == "gibbs" else problem.loss_of(model.predict(problem.codes, rule))
            tally.above(f"holdout, {rule}", name, true, value)
        true = problem.loss_of(model.predict(problem.codes, "mode"))
        value = certify(model, sample, bound="holdout", predictor="mode", method="betting").value
        tally.above("holdout, betting", name, true, value)
        options = {"loss": "absolute", "alphabet": letters.values, "sample_weight": weights}
        means = folds_of(problem, other, rng, tally)  # the same committee on tuples that no member has seen
        value = certify_predictions(y, means[at], **options).value
        tally.above("holdout, committee", "fitted on the complement", problem.loss_of(means), value)
        # Of many predictors fixed beforehand the sample takes the one that hurts most; the union is paid.
        pattern = problem.pattern(tuple(best_of_many(problem, counts, rng, n_patterns=CANDIDATES)))
        chosen = np.where(pattern > 0, letters.numbers.max(), letters.numbers.min())
        true = problem.loss_of(chosen)
        for method in ("log-wealth", "betting"):
            value = certify_predictions(y, chosen[at], candidates=CANDIDATES, method=method, **options).value
            tally.above(f"holdout, union, {method}", "best of many", true, value)
        value = certify_predictions(y, chosen[at], **options).value
        tally.above("broken: union over candidates forgotten", "best of many", true, value)
    return tally


def folds_of(
    problem: Planted, counts: np.ndarray, rng: np.random.Generator, tally: Tally, n_folds: int = 3
) -> np.ndarray:
    """A cross-committee: member j is fitted without fold j. Returns what it predicts for every tuple."""
    at, labels = (np.repeat(index, counts[np.nonzero(counts)].astype(int)) for index in np.nonzero(counts))
    folds = rng.integers(0, n_folds, len(at))
    guesses, members = np.zeros(len(at)), []
    for fold in range(n_folds):
        rest = np.zeros_like(counts)
        np.add.at(rest, (at[folds != fold], labels[folds != fold]), 1.0)
        members.append(fitted(problem, rest, rng).predict(problem.codes))
        guesses[folds == fold] = members[-1][at[folds == fold]]
    letters = problem.cell.alphabet
    team = SimpleNamespace(
        folds_=folds, fold_predictions_=guesses, fold_rows_=np.arange(len(at)), fold_labels_=letters.values[labels]
    )
    value = certify(team, alphabet=letters.values, bound="folds").value
    means = np.mean(members, axis=0)
    tally.above("cross-committee", "fitted on the complement", problem.loss_of(means), value)
    return means


def split(problem: Planted, n_samples: int, seed: int) -> Tally:
    """Split prior: the second part chooses a posterior near the first part's."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    for turn in range(n_samples):
        first, counts = problem.draw(rng), problem.draw(rng)
        sample = problem.sample(counts)
        name = ("fitted on the complement", "undecided, so the deepest fit", "best of many")[turn % 3]
        if name == "fitted on the complement":
            prior, candidates = fitted(problem, first, rng), 1
        elif name == "best of many":  # which of many priors is decided on the certified tuples, and paid
            prior, candidates = problem.posterior(ups([0.9 * s for s in best_of_many(problem, counts, rng)])), MANY
        else:
            prior, candidates = problem.posterior(tuple(np.full(len(s), 0.5) for s in problem.signs)), 1
        certificate = certify_prior(prior, sample, DELTA, STATED, candidates)
        true = problem.loss(certificate.posterior)
        tally.above("split prior", name, true, certificate.value)
        law, n = certificate.evidence.distribution, certificate.n_observations
        naive = certificate.evidence.in_unit(bounds.log_wealth(law, 0.0, n, DELTA).value)
        tally.above("broken: split prior without KL", name, true, naive)
    return tally


def population(problem: Planted, n_samples: int, seed: int) -> Tally:
    """A population drawn once, an eighth of it observed: its mean, and the mean of what was not."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    n, size = problem.n_observations, 8 * problem.n_observations
    for turn in range(n_samples):
        everything = problem.draw(rng, size)
        cells = np.repeat(np.arange(everything.size), everything.ravel().astype(int))
        counts = np.zeros_like(everything)
        np.add.at(counts.reshape(-1), rng.permutation(cells)[:n], 1.0)
        hidden = everything - counts
        sample = problem.sample(counts)
        name = ADVERSARIES[turn % 3]
        posterior = adversary(name, problem, counts, rng, hidden)
        certificate = certify(posterior, sample, population=problem.population)
        mean, rest = problem.loss(posterior, everything), problem.loss(posterior, hidden)
        for row in certificate.compare(together=False):
            tally.above(f"population mean, {row.bound}", name, mean, whole_population(row, size).value)
            tally.above(f"held-out part, {row.bound}", name, rest, held_out_part(row, size).value)
        tally.above("transductive", name, rest, transductive(certificate, size).value)
        broken = broken_bounds(certificate.evidence)["broken: kl without KL"]
        tally.above("broken: population mean, kl without KL", name, mean, broken)
    return tally
