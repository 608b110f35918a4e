"""Tables of the study: relevance, Laplace, evidence and scores, beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.files.atomic import write_text
from sbnn.evidence.relevance import neuron_relevance
from sbnn.methods.details import LaplaceDetails, NsblDetails
from sbnn.methods.result import Result
from sbnn.problems.network import Network
from sbnn.scores import NormalMixture, coverage, crps_draws, nlpd, rmse
from sbnn.study.runs import NOISE_STD, Study, details

POINTS = np.array([-6.0, -3.0, 0.0, 3.0, 6.0])

# The study's published numbers. Table 1: log α and γ, in the order of φ.
PUBLISHED_1 = pd.DataFrame(
    {
        "log_alpha": [-2.560, -0.211, -3.025, -2.589, -1.667, -3.182, -1.237, 6.460, -1.246, 6.524],
        "gamma": [0.972, 0.747, 0.980, 0.972, 0.962, 0.984, 0.993, 0.061, 0.991, 0.882],
    },
    index=Network((1, 3, 1)).names,
)
# Table 2, with its rows in the order they must have (±2 are output weights): W[2], b[2], W[1],
# b[1].
PUBLISHED_2 = pd.DataFrame(
    [
        (-1.994, 0.008, -1.416, 0.999, -2.028, 0.006),
        (0.000, 1.000, 12.153, 0.000, 0.000, 0.000),
        (1.903, 0.011, -1.335, 0.999, 1.948, 0.006),
        (0.046, 0.013, 14.327, 0.000, 0.000, 0.000),
        (-4.121, 1.826, -2.32, 0.870, -2.974, 1.326),
        (0.000, 1.000, 12.153, 0.000, 0.000, 0.000),
        (-5.753, 4.077, -2.934, 0.848, -3.993, 2.862),
        (-4.016, 1.769, -2.270, 0.867, -2.896, 1.291),
        (0.000, 1.000, 12.153, 0.000, 0.000, 0.000),
        (5.849, 3.411, -3.014, 0.880, 4.233, 2.455),
    ],
    columns=["mode", "variance", "log_alpha", "gamma", "mean", "posterior_variance"],
    index=[*(f"W[2][1,{j}]" for j in (1, 2, 3)), "b[2][1]"]
    + [f"W[1][{j},1]" for j in (1, 2, 3)]
    + [f"b[1][{j}]" for j in (1, 2, 3)],
)


def arrangement(network: Network, relevance: np.ndarray | None) -> np.ndarray:
    """Index that puts the least relevant hidden neuron second, as in the study's tables."""
    assert relevance is not None
    order = np.argsort(neuron_relevance(network, relevance)[0], kind="stable")
    order = np.array([order[1], order[0], order[2]])
    at = network.unflatten(np.arange(network.n_parameters))
    (w1, b1), (w2, b2) = at
    return network.flatten([(w1[order], b1[order]), (w2[:, order], b2)]).astype(int)


def table_1(study: Study) -> pd.DataFrame:
    """Log α MAP and γ by NSBL beside the published ones."""
    result = study.results["nsbl"]
    index = arrangement(result.network_problem.network, result.relevance)
    assert result.log_alpha is not None
    assert result.relevance is not None
    return pd.DataFrame(
        {
            "log_alpha": result.log_alpha[index],
            "gamma": result.relevance[index],
            "published_log_alpha": PUBLISHED_1["log_alpha"].to_numpy(),
            "published_gamma_rms": PUBLISHED_1["gamma"].to_numpy(),
        },
        index=pd.Index(result.names, name="parameter"),
    )


def table_2(study: Study) -> pd.DataFrame:
    """Laplace before and after sparse learning beside the published numbers.

    Before: mode and variance of the likelihood at the sparse mode, NaN where the curvature there
    is zero (the study's 1.000 is a placeholder).
    """
    result = study.results["laplace_nsbl"]
    index = arrangement(result.network_problem.network, result.relevance)
    assert result.log_alpha is not None
    assert result.relevance is not None
    found = details(result, LaplaceDetails)
    values, vectors = np.linalg.eigh(found.precision)
    null = values < 1e-6 * values.max()
    inverse = (vectors[:, ~null] / values[~null]) @ vectors[:, ~null].T
    # The variance of a parameter with a component in the null space is undefined.
    loose = (vectors[:, null] ** 2).sum(axis=1) > 1e-6
    variance = np.where(loose, np.nan, np.diag(inverse))
    gradient = np.exp(np.where(found.mode == 0, 0.0, result.log_alpha)) * found.mode
    before = np.where(loose, 0.0, found.mode + inverse @ gradient)
    table = pd.DataFrame(
        {
            "mode": before,
            "variance": variance,
            "log_alpha": result.log_alpha,
            "gamma": result.relevance,
            "mean": found.mode,
            "posterior_variance": np.diag(found.covariance),
        }
    ).iloc[index]
    table.index = pd.Index(result.names, name="parameter")
    return table.join(PUBLISHED_2.add_prefix("published_"))


def table_evidence(study: Study) -> pd.DataFrame:
    """Claimed and exact log evidence of each sparse method at its α."""
    nsbl = study.results["nsbl"]
    assert nsbl.optima is not None
    found = details(nsbl, NsblDetails)
    claimed, exact = found.mixture_log_evidence, found.mixture_exact_log_evidence
    assert claimed is not None
    assert exact is not None
    rows = [("mixture's best α, before refinement", claimed, exact, np.nan)]
    for i, row in nsbl.optima.iterrows():
        name = "NSBL, refined" if i == 0 else f"further optimum {i}"
        rows.append((name, row["estimate"], row["log_evidence"], row["log_evidence_error"]))
    laplace = study.results["laplace_nsbl"]
    rows.append(("Laplace with NSBL, one mode", laplace.log_evidence, *study.laplace_exact))
    table = pd.DataFrame(rows, columns=["optimum", "claimed", "exact", "exact_error"])
    table["gap"] = table["claimed"] - table["exact"]
    return table.set_index("optimum")


def widths(result: Result, x: np.ndarray = POINTS) -> np.ndarray:
    """Width of the 95 % push-forward band at x."""
    draws = result.push_forward(x, len(result.phi))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    return high - low


def table_scores(study: Study) -> pd.DataFrame:
    """Scores of the five methods against the truth and fresh observations, inside and outside."""
    truth = study.data.truth
    inside = np.linspace(-3, 3, 121)
    outside = np.concatenate([np.linspace(-6, -3.05, 60), np.linspace(3.05, 6, 60)])
    rng = np.random.default_rng([study.settings.seed, 99])
    rows = {}
    for name, result in study.results.items():
        row: dict[str, Any] = {}
        for place, x in (("inside", inside), ("outside", outside)):
            fresh = truth(x) + NOISE_STD * rng.normal(size=len(x))
            means = result.push_forward(x, 1000)
            draws = result.predictive(x, 1000)
            low, high = np.quantile(draws, [0.025, 0.975], axis=0)
            row[f"rmse_{place}"] = rmse(truth(x), means.mean(axis=0))
            row[f"nlpd_{place}"] = nlpd(fresh, NormalMixture.of_draws(means, NOISE_STD))
            row[f"crps_{place}"] = crps_draws(fresh, draws)
            row[f"coverage_{place}"] = coverage(fresh, low, high)
        row["width_at_-6"], row["width_at_6"] = widths(result, np.array([-6.0, 6.0]))
        row["evaluations"] = result.n_evaluations
        rows[name] = row
    return pd.DataFrame(rows).T.rename_axis("method").astype({"evaluations": int})


def write_tables(study: Study, out: Path, claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All tables as CSV and LaTeX; the same seed gives the same bytes."""
    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "table1": table_1(study),
        "table2": table_2(study),
        "evidence": table_evidence(study),
        "scores": table_scores(study),
        "claims": claims,
    }
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv(float_format="%.6g"))
        write_text(folder / f"{name}.tex", _latex(table))
    return tables


def _latex(table: pd.DataFrame) -> str:
    text = table.reset_index().to_latex(index=False, float_format="%.3f", escape=True, na_rep="--")
    for plain, tex in (("γ", r"$\gamma$"), ("α", r"$\alpha$"), ("×", r"$\times$"), ("−", "$-$")):
        text = text.replace(plain, tex)
    return text
