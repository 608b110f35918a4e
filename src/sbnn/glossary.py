"""Words for readers: a glossary, and advice that can be followed on the command line."""

GLOSSARY = {
    "optimum": "A fit that no small step improves. Different starts end in different optima; the "
    "prediction averages those that were kept. The weight of an optimum is its share in this "
    "average, larger for those that predict left-out rows better.",
    "kept, pruned": "A pruned weight is zero: the data do not ask for it. All others are kept. "
    "Several optima keep different numbers of weights; the means of these may be fractions.",
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
    "unseen rows": "Rows that the predicting fit was not given. All scores are about them.",
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
# Advice of the Python functions, and what can be done on the command line instead.
_INSTEAD = (
    "Try another --seed or a smaller --hidden, or --method laplace_nsbl, which does not sample"
)
ADVICE = {
    "; raise `max_moves`, or write the log-likelihood with jax.numpy": f". {_INSTEAD}",
    "Raise n_particles, or do not rely on this α": f"{_INSTEAD}; or do not rely on this α",
}


def for_the_command_line(text: str) -> str:
    """A message of the Python functions with advice for the command line."""
    for advice, instead in ADVICE.items():
        text = text.replace(advice, instead)
    return text
