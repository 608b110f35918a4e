"""Words for readers: a glossary, and advice that can be followed on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sbnn._core.text import plural

GLOSSARY = {
    "optimum": "A fit that no small step improves. Different starts end in different optima; the "
    "prediction averages those that were kept. The weight of an optimum is its share in this "
    "average, larger for those that are surer and predict left-out rows better.",
    "kept, pruned": "A pruned weight is zero, or, where it was sampled, of γ below 0.1: the data "
    "do not ask for it. All others are kept. Several optima keep different numbers of weights, of "
    "networks that may differ in size; means over the optima may be fractions.",
    "evidence": "The probability density of the data under the model, with all values of the "
    "weights averaged over. It rewards a good fit and punishes weights that are not needed. "
    "Always given as natural logarithm; comparable between models of the same rows and target.",
    "nat": "The unit of natural logarithms. Models that differ by one nat in log evidence differ "
    "by a factor of 2.7 in probability; by five nats, of 148.",
    "α, log α": "The precision (one over the variance) of the prior of a weight. The data choose "
    "it: large holds the weight near zero, ∞ is pruned.",
    "γ, relevance": "How far the data decide a weight: 1 they alone, 0 the prior alone.",
    "noise": "Scatter of the observations around the function, as a standard deviation. No model "
    "can predict it. Intervals contain it, and the model's own uncertainty about the function.",
    "unseen rows": "Rows that the predicting fit was not given. All scores are about them. Where "
    "there are posterior draws, a row is taken out by giving draws that explain it less weight "
    "(Pareto-smoothed importance sampling); a row that few draws explain is unreliable (Pareto k "
    "above 0.7).",
    "RMSE": "Root mean squared error: the typical error, in the units of the target.",
    "NLPD": "Mean negative log predictive density, in nats per row: punishes errors and intervals "
    "that are too narrow or too wide. Lower is better; differences count, not the value.",
    "CRPS": "Continuous ranked probability score: the same idea in the units of the target, milder "
    "with outliers. For a prediction without uncertainty it is the absolute error.",
    "PIT": "Probability integral transform: the predicted probability of a value below the one "
    "observed. Evenly spread from 0 to 1 when the predicted distributions are right.",
    "standardised units": "Inputs and targets shifted to mean 0 and scaled to standard deviation "
    "1, as the network sees them.",
}
_INSTEAD = (
    "Try another --seed or a smaller --hidden, or --method laplace_nsbl, which does not sample"
)
FINE = "finished as it should"
# What the Python functions say, and what of it can be understood and followed on the command line.
ADVICE = (
    (r"method='(\w+)'", r"--method \1"),
    (r"Newton: [^;]*; exact run: ", ""),
    (r"reached β = 1; particles decorrelated in every stage", FINE),
    (
        r"(?:it )?reached β = 1, but particles had not decorrelated after all moves of "
        r"(\d+) stages? \(correlation up to ([\d.]+)\)",
        lambda found: (
            f"in {plural(int(found[1]), 'stage')} its draws still resembled those they came from "
            f"(correlation up to {found[2]}; below 0.2 is fine)"
        ),
    ),
    (
        r"(?:it )?stopped at β = (\S+) after (\d+) stages?",
        r"it gave up after \2 stages, before the data had their full weight (\1 of 1)",
    ),
    (r"; try another key, or raise `n_particles`", f". {_INSTEAD}"),
    (r"; raise `max_moves`, or write the log-likelihood with jax\.numpy", f". {_INSTEAD}"),
    (
        r"Not verified: the estimated log evidence .* differ by more than (\S+) nat\. "
        r"Raise n_particles, or do not rely on this α",
        rf"The exact and the estimated log evidence differ by more than \1 nat. {_INSTEAD}; or do "
        "not rely on what was pruned",
    ),
    (
        r"The data resolve (.*) more finely than .* so they cannot be pruned\..*",
        r"This method could not prune \1, whether the data ask for them or not: it lets no "
        r"precision grow so far. --method laplace_nsbl has no such limit.",
    ),
    (
        r" ?method_options=\{'iterations': \d+\} lets them go on, at the cost of time\.",
        " The scores on unseen rows hold as they are.",
    ),
)
REJECTED = re.compile(r"was NaN or −inf in (\d+) of (\d+) evaluations")
# Points of zero likelihood are no fault of a fit while they are few: the priors are wide.
FEW_REJECTED = 0.01


def for_the_command_line(texts: Iterable[str]) -> list[str]:
    """Messages of the Python functions, each once, with advice for the command line.

    That a few points were rejected is left out: nobody has to do anything about it.
    """
    out = []
    for text in texts:
        found = REJECTED.search(text)
        if found and int(found[1]) < FEW_REJECTED * int(found[2]):
            continue
        for pattern, instead in ADVICE:
            text = re.sub(pattern, instead, text)
        out.append(text)
    return list(dict.fromkeys(out))
