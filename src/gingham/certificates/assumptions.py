"""What a guarantee rests on: codes with facts. Whoever prints them makes the sentences.

A certificate file holds codes and facts only, so that nobody can read anything else into it than the checker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gingham.arrays import Floats
from gingham.data import Alphabet, Bounds
from gingham.errors import GinghamError

STATUSES = ("checked", "given")
Sentence = str | Callable[..., str]

LIKE_THESE = "Pairs that nobody would choose to observe are not among them."

SENTENCES: dict[str, Sentence] = {
    # how the rows came
    "independent": "The observations were drawn independently of each other from the population that new ones will "
    f"come from. {LIKE_THESE}",
    "independent or without replacement": "The observations were drawn independently of each other from the "
    f"population that new ones will come from (or at random without replacement from it). {LIKE_THESE}",
    "without replacement": "The observed rows were drawn at random without replacement from a finite population.",
    "pairs among these nodes": lambda n: (
        f"The pairs were drawn at random from all pairs among one fixed set of nodes, of which the model knows {n:,}. "
        "Nodes that join later are not covered: pairs that share a node are not independent draws of nodes."
    ),
    "arriving": "The observations arrived one by one, independently of each other, from the population that new ones "
    "will come from; all that arrived are counted.",
    "fixed before arrival": "Labels, loss and δ were fixed before the first observation arrived. The model may be "
    "refitted, its size changed, and the certificate looked at after every observation, and one may stop whenever one "
    "likes.",
    "order of arrival": "The rows stand in the order in which they arrived. The guarantee speaks of the expected "
    "losses at the times of the tests, given what came before, changes of the source included; a new observation is "
    "covered if it comes from the source of the tested ones.",
    "one source": "The observations were drawn independently of each other from the population that new ones will "
    f"come from (drawn without replacement, the guarantee speaks of those not yet drawn at each step). {LIKE_THESE}",
    "all alike": "The observations were drawn independently of each other, each from the population that new ones "
    "will come from (and not from what earlier draws left of it).",
    "independent groups": lambda n: (
        f"The {n:,} groups were drawn independently of each other from those that new ones will come from; rows of one "
        "group need not be independent. The certificate covers the mean over groups of each group's mean loss."
    ),
    "rows that share no group": lambda n, of: (
        f"The groups were drawn independently of each other from those that new rows will have, and which of them "
        f"stand together was decided without a look at labels. Tested are {n:,} of the {of:,} rows, drawn at random, "
        f"of which no two share a group; the certificate covers rows of new groups."
    ),
    "propensities": lambda gamma, least: (
        "The rows were drawn independently of each other from the catalogue, each pair in proportion to its propensity"
        f"{'' if gamma == 1 else f', up to a factor between 1/{gamma:g} and {gamma:g} that may depend on its label'}; "
        f"none in the catalogue is below {least:g}."
    ),
    "strata": "To which stratum a row belongs was decided without a look at its label or its prediction. Within a "
    "stratum new rows are like the tested ones; the mix of strata may be another.",
    "strata by items": "To which stratum a row belongs follows from the items that the predictor knows. Within a "
    "stratum new rows are like the tested ones; the mix of strata may be another.",
    "set aside": lambda counts: (
        f"{', '.join(f'{n:,} ids of {name!r}' for name, n in counts.items())} were drawn at random, and no member has "
        "learned from their rows."
    ),
    "mix": lambda shares: (
        f"The mix of strata is {', '.join(f'{100 * share:.3g} % {name!r}' for name, share in shares.items())}. "
        "The certificate covers the mean over rows in these shares."
    ),
    "order watched": "All rows that arrived are counted, in the order in which they arrived: nobody who knew their "
    "labels chose among them or changed their order.",
    "predictions watched": "The predictions are those of the predictor that was certified, made before the labels were "
    "known.",
    "order of time": "The rows stand in the order of time; within each half of it the mean over its rows is meant.",
    "weights": "A row of weight w stands for w independent draws.",
    "repetitions": lambda share: f"{100 * share:.3g} % of the rows repeat others exactly, and were drawn anew.",
    "few hold most": lambda n, of, mode: (
        f"Half of the rows belong to {n} among {of:,} items of {mode!r}; rows of one item still count as independent "
        "draws. Where the loss on new ones is what matters, the draws are these, not the rows: certify_predictions(…, "
        "groups=)."
    ),
    "seed drawn": lambda what, seed: f"The {what} was drawn after the rows were fixed (seed {seed}, drawn afresh).",
    "seed chosen": lambda what, seed: (
        f"The seed {seed} of the {what} was chosen without looking at the rows or at the results of other seeds."
    ),
    # labels, losses and items
    "labels": lambda values: (
        f"Labels are among {', '.join(str(value) for value in values[:8])}{', …' if len(values) > 8 else ''}."
    ),
    "bounds": lambda low, high: f"Labels lie between {low:g} and {high:g}.",
    "range": lambda low, high: f"The loss lies between {low:g} and {high:g}.",
    "rounded answers": lambda n: (
        f"The cells' answers are rounded to {n:,.0f} possible ones; certificate.posterior is the model with these "
        "answers."
    ),
    "population": lambda sizes: (
        f"The total number of items is known: {', '.join(f'{n:,} of {name!r}' for name, n in sizes.items())}."
    ),
    "known items only": "There are no items but those that the model knows, and the tree was fixed before the "
    "observations were drawn.",
    "clusters fixed beforehand": lambda names: (
        f"The clusters of {', '.join(map(repr, names))} were fixed without a look at these rows, so that nothing is "
        "paid for them."
    ),
    "urn": "All observations of the source are covered: an item that the model has not seen falls into cluster c with "
    "probability (n·q̄(c) + 1)/(n + m), as in predict.",
    # who was tested, and what they had seen
    "not fitted on these": "The predictor, and every choice that led to it, was made without these rows; the "
    "candidates among which they decided are all counted.",
    "no row of the fit": lambda compared=None: (
        "None of the rows is a row of the fit."
        if compared is None
        else f"None of the {compared:,} rows that were compared, drawn at random from them, is a row of the fit."
    ),
    "equal to rows of the fit": lambda same, compared=None: (
        f"{same:,}{' of the rows' if compared is None else f' of the {compared:,} rows that were compared'} are equal "
        "to rows of the fit, which repetitions may explain; they were drawn anew."
    ),
    "other labels than in the fit": lambda other, compared: (
        f"{other:,} of {compared:,} compared rows name items that the fit has observed together, with other labels. "
        "They were observed anew: none is a row of the fit whose label was rounded or changed."
    ),
    "parts decided beforehand": "Which rows belong to which part was decided without a look at their labels.",
    "folds": "Member j, and every choice that led to it, was made without fold j.",
    "prior from elsewhere": "The prior was learned on other rows of the same population.",
    "predicted first": "Every loss belongs to a prediction that was made before its label was known, by a predictor "
    "that depends on earlier observations only.",
    "members fitted here": "Every member was fitted here, on draws before those that test it.",
    "members fitted outside": lambda why: (
        "Every member depends on draws before those that test it, and on nothing else, which gingham cannot check: "
        f"{why}."
    ),
    "row by row": "The model answers a row alike, whatever other rows it is asked about with it.",
    "settings": "The model's settings and seeds were chosen without the observations that test it, and this is not the "
    "smallest of several certificates; or all that were tried are counted (candidates=).",
    "fixed before the first test": "ν, δ and the loss were fixed before the first test; every test is counted.",
    # rankings
    "users drawn": "The users were drawn independently of each other from those the ranking is for.",
    "users without replacement": lambda population: (
        f"The users were drawn without replacement, all alike, from {population:,}."
    ),
    "hiding drawn": "Which items of a user were hidden was drawn at random, for each user independently of the others.",
    "ranking independent of hiding": lambda candidates: (
        "No ranking depends on which items were hidden, neither by having seen them nor by having been fitted on what "
        "was left of the same users' items; none was chosen by them"
        f"{f' other than as one of {candidates} candidates' if candidates > 1 else ''}."
    ),
    "fitted on other users": lambda why=None: (
        "Each list was made from what stayed visible of one user's items, by a model that was fitted here on the items "
        f"of other users{'' if why is None else f', and learned nothing elsewhere, which nobody here can see: {why}'}."
    ),
    # pairwise clusters
    "objects": "The objects are independent draws from one distribution.",
    "clusters fixed": "The clusters and the prior were fixed before these objects were seen.",
}


@dataclass(frozen=True)
class Assumption:
    """Something the guarantee rests on.

    Attributes
    ----------
    code : str
        One of `SENTENCES`; any other code is a statement of the caller's, and its own sentence.
    status : {"checked", "given"}
        "checked": the library itself made or found it true. "given": stated by the caller, or it cannot be verified.
    facts : mapping
        What the sentence needs: numbers, names, lists of them.
    """

    code: str
    status: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise GinghamError(f"status={self.status!r} is unknown; choose one of {', '.join(STATUSES)}.")

    @property
    def text(self) -> str:
        """The sentence."""
        sentence = SENTENCES.get(self.code, self.code)
        return sentence if isinstance(sentence, str) else sentence(**self.facts)

    def to_dict(self) -> dict[str, object]:
        """Plain values; the sentence comes last, for people."""
        return {"code": self.code, "status": self.status, "facts": dict(self.facts), "text": self.text}


def rests_on(assumptions: Iterable[Assumption]) -> list[str]:
    """The last lines of an explanation."""
    return ["It rests on:", *(f"  [{one.status}] {one.text}" for one in assumptions)]


def given(code: str, **facts: object) -> Assumption:
    """Something that nobody here can verify."""
    return Assumption(code, "given", facts)


def checked(code: str, **facts: object) -> Assumption:
    """Something that was made or found true here."""
    return Assumption(code, "checked", facts)


def drawn_rows(weights: Floats | None) -> tuple[Assumption, ...]:
    """What has to be believed of weights; nothing where every row counts once."""
    return () if weights is None or bool((weights == 1).all()) else (given("weights"),)


def drawn_order(seed: int, drawn_here: bool, what: str = "order") -> Assumption:
    """Who decided which draws stand where."""
    return (checked if drawn_here else given)("seed drawn" if drawn_here else "seed chosen", what=what, seed=seed)


def labels_given(labels: Alphabet | Bounds) -> Assumption:
    """What was stated of the possible labels: all of them, or the smallest and largest."""
    if isinstance(labels, Bounds):
        return given("bounds", low=float(labels.low), high=float(labels.high))
    return given("labels", values=labels.values.tolist())
