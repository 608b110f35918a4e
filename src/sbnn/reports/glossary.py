"""The glossary of the report and the documentation."""

from __future__ import annotations

GLOSSARY = {
    "optimum": "A fit that no small step improves. Different starts end in different optima, and "
    "the prediction averages the ones kept. The weight of an optimum is its share in this "
    "average; it is larger for optima that are more certain and predict left-out rows better.",
    "kept, pruned": "A pruned weight is one the data do not support: it is zero or, if it was "
    "sampled, its γ is below 0.1. All other weights are kept. Optima keep different numbers of "
    "weights, and their networks may differ in size, so means over the optima may be fractions.",
    "evidence": "The probability density of the data under the model, averaged over all values of "
    "the weights. It rewards a good fit and penalises unnecessary weights. It is always given as "
    "a natural logarithm and can be compared between models of the same rows and target.",
    "nat": "The unit of natural logarithms. Models that differ by one nat in log evidence differ "
    "by a factor of 2.7 in probability; by five nats, of 148.",
    "α, log α": "The precision (one over the variance) of the prior of a weight, learned from the "
    "data. A large α holds the weight near zero; α = ∞ prunes it.",
    "γ, relevance": "How much the data determine a weight: from 0 (the prior alone) to 1 (the "
    "data alone).",
    "noise": "Scatter of the observations around the function, as a standard deviation. No model "
    "can predict it. Intervals include the noise and the uncertainty about the function.",
    "unseen rows": "Rows that were left out of the fit that predicts them. All scores are for "
    "unseen rows. With posterior draws, a row is left out by giving less weight to the draws that "
    "explain it well (Pareto-smoothed importance sampling); this is unreliable for rows that "
    "strongly influence the posterior (Pareto k above 0.7).",
    "RMSE": "Root mean squared error: the typical error, in the units of the target.",
    "NLPD": "Mean negative log predictive density, in nats per row. It penalises errors and "
    "intervals that are too narrow or too wide. Lower is better; only differences are meaningful.",
    "CRPS": "Continuous ranked probability score: like NLPD, but in the units of the target and "
    "less sensitive to outliers. For a prediction without uncertainty it is the absolute error.",
    "PIT": "Probability integral transform: the predicted probability of a value below the "
    "observed one. Uniform between 0 and 1 if the predicted distributions are right.",
    "standardised units": "Inputs and targets shifted to mean 0 and scaled to standard deviation "
    "1; the network works in these.",
}
