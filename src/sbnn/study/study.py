"""The study: five methods on the boxcar data, their tables, and the claims they are held to."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn import __version__, datasets
from sbnn._core.atomic import write_text
from sbnn.evidence.ascent import exact_evidence, savage_dickey
from sbnn.evidence.relevance import neuron_relevance
from sbnn.io import load
from sbnn.methods import _laplace as laplace_methods
from sbnn.methods import sampled as methods
from sbnn.methods.result import Orbit, Result
from sbnn.priors import Hyperprior
from sbnn.problems.network import Network
from sbnn.problems.network_regression import NetworkProblem, network_problem
from sbnn.sampling.checkpoints import CheckpointError
from sbnn.scores import NormalMixture, coverage, crps_draws, nlpd, rmse

NOISE_STD = 0.5
METHODS = ("standard", "nsbl", "hierarchical", "laplace", "laplace_nsbl")
POINTS = np.array([-6.0, -3.0, 0.0, 3.0, 6.0])

# The study's published numbers. Table 1: log α and γ, in the order of φ.
PUBLISHED_1 = pd.DataFrame(
    {
        "log_alpha": [-2.560, -0.211, -3.025, -2.589, -1.667, -3.182, -1.237, 6.460, -1.246, 6.524],
        "gamma": [0.972, 0.747, 0.980, 0.972, 0.962, 0.984, 0.993, 0.061, 0.991, 0.882],
    },
    index=Network((1, 3, 1)).names,
)
# Table 2, its rows relabelled to the order they must have (±2 are output weights): W[2], b[2],
# W[1], b[1].
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


class Settings(NamedTuple):
    """What a run of the study is made of; a change of any of these recomputes it."""

    seed: int
    n_particles: int
    version: str = __version__

    @classmethod
    def of(cls, seed: int, quick: bool) -> Settings:
        return cls(seed, 800 if quick else 2000)


class Study(NamedTuple):
    """Everything the report shows."""

    settings: Settings
    data: datasets.Dataset
    small: Result  # standard Bayes on the 1-2-1 net
    results: dict[str, Result]  # the five methods on the 1-3-1 net
    orbit: Orbit  # the best mode of the 1-2-1 posterior and its images
    laplace_exact: tuple[float, float]  # exact log evidence at the α of Laplace with NSBL


def problems(seed: int) -> tuple[datasets.Dataset, NetworkProblem, NetworkProblem]:
    """The data, the 1-2-1 and the 1-3-1 problem."""
    data = datasets.boxcar(seed=seed)
    two, three = (
        network_problem(data.x, data.y, (width,), "tanh", noise_std=NOISE_STD, bound=20.0)
        for width in (2, 3)
    )
    return data, two, three


def run(
    out: Path, seed: int = 0, quick: bool = False, force: bool = False, say: Callable = print
) -> Study:
    """Compute what is missing in `out` and return the study.

    Each part is one file, written whole or not at all; parts of other settings are recomputed. A
    part that was interrupted continues from its last finished stage.
    """
    settings = Settings.of(seed, quick)
    folder = out / "results"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "settings.json"
    if force or not _same_settings(stamp, settings):
        for old in folder.glob("*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        write_text(stamp, json.dumps(settings._asdict(), indent=1))
    data, two, three = problems(seed)
    n = settings.n_particles
    parts: dict[str, Callable[[Path], Result]] = {
        "standard_121": lambda c: methods.standard(two, key=1, n_particles=n, checkpoint=c),
        "standard": lambda c: methods.standard(three, key=0, n_particles=n, checkpoint=c),
        "nsbl": lambda c: methods.nsbl(three, key=0, n_particles=n, checkpoint=c),
        "hierarchical": lambda c: methods.hierarchical(three, key=0, n_particles=n, checkpoint=c),
        "laplace": lambda c: laplace_methods.laplace(three, key=0, n_particles=n),
        "laplace_nsbl": lambda c: laplace_methods.laplace_nsbl(three, key=0, n_particles=n),
    }
    done: dict[str, Result] = {}
    for index, (name, compute) in enumerate(parts.items(), start=1):
        path = folder / f"{name}.nc"
        result = _reuse(path)
        if result is None:
            say(f"[{index}/{len(parts) + 1}] {name}: running")
            result = _continue(compute, folder / f"{name}.checkpoint", say)
            result.save(path, overwrite=True)
            shutil.rmtree(folder / f"{name}.checkpoint", ignore_errors=True)
            say(f"[{index}/{len(parts) + 1}] {name}: {result.seconds:.0f} s, {result!r}")
        else:
            say(f"[{index}/{len(parts) + 1}] {name}: finished before, reused")
        done[name] = result
    exact_path = folder / "laplace_exact.json"
    if not exact_path.exists():
        say(f"[{len(parts) + 1}/{len(parts) + 1}] exact evidence of Laplace's optimum: running")
        log_alpha = done["laplace_nsbl"].log_alpha
        assert log_alpha is not None
        exact = exact_evidence(three, log_alpha, 7, n_particles=max(n // 2, 200))
        write_text(exact_path, json.dumps([exact.log_evidence, exact.log_evidence_error]))
    laplace_exact = tuple(json.loads(exact_path.read_text()))
    small = done.pop("standard_121")
    return Study(settings, data, small, done, small.modes(8)[0], laplace_exact)  # type: ignore[arg-type]


def _same_settings(path: Path, settings: Settings) -> bool:
    try:
        return json.loads(path.read_text()) == settings._asdict()
    except (OSError, ValueError):
        return False


def _reuse(path: Path) -> Result | None:
    with contextlib.suppress(FileNotFoundError, ValueError):
        return load(path)
    return None


def _continue(compute: Callable[[Path], Result], checkpoint: Path, say: Callable) -> Result:
    """From an interrupted run's checkpoint, or from the beginning where that cannot be used."""
    try:
        return compute(checkpoint)
    except CheckpointError as error:
        say(f"Starting over: {error}")
        shutil.rmtree(checkpoint)
        return compute(checkpoint)


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
    precision = result.arrays["precision"]
    values, vectors = np.linalg.eigh(precision)
    null = values < 1e-6 * values.max()
    inverse = (vectors[:, ~null] / values[~null]) @ vectors[:, ~null].T
    # A parameter that reaches into the null space has no variance of its own.
    loose = (vectors[:, null] ** 2).sum(axis=1) > 1e-6
    variance = np.where(loose, np.nan, np.diag(inverse))
    gradient = np.exp(result.log_alpha) * result.arrays["mode"]
    before = np.where(loose, 0.0, result.arrays["mode"] + inverse @ gradient)
    table = pd.DataFrame(
        {
            "mode": before,
            "variance": variance,
            "log_alpha": result.log_alpha,
            "gamma": result.relevance,
            "mean": result.arrays["mode"],
            "posterior_variance": np.diag(result.arrays["covariance"]),
        }
    ).iloc[index]
    table.index = pd.Index(result.names, name="parameter")
    return table.join(PUBLISHED_2.add_prefix("published_"))


def table_evidence(study: Study) -> pd.DataFrame:
    """What each sparse method claims about its α, and what is true."""
    nsbl = study.results["nsbl"]
    assert nsbl.optima is not None
    surrogate, first = nsbl.arrays["surrogate"]
    rows = [("mixture's best α, before refinement", surrogate, first, np.nan)]
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
    for name in METHODS:
        result = study.results[name]
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


class Claim(NamedTuple):
    """A claim of the study, what this run measured, and whether it holds here."""

    claim: str
    measured: str
    holds: bool


def claims(study: Study) -> list[Claim]:
    """The study's claims, each judged by this run's numbers alone."""
    nsbl, hierarchical = study.results["nsbl"], study.results["hierarchical"]
    orbit = study.orbit
    share = orbit.masses.sum() / len(orbit.masses)
    error = 4 * np.sqrt(share * (1 - share) / len(study.small.phi))
    even = bool(np.abs(orbit.masses - share).max() < error)
    gamma = table_1(study)["gamma"]
    outputs = gamma[[f"W[2][1,{j}]" for j in (1, 2, 3)]].to_numpy()
    assert nsbl.log_alpha is not None
    without_bias = savage_dickey(nsbl.arrays["best_phi"], nsbl.log_alpha)[-1]
    iterations = nsbl.arrays["newton_iterations"]
    typical = float(np.median(iterations))
    reference = widths(hierarchical)
    ratio = widths(nsbl) / reference
    unlike = float(np.abs(ratio - 1).mean())
    rows = [
        Claim(
            "The 1-2-1 posterior has eight symmetric modes",
            f"one orbit of {len(orbit.images)} modes with masses from "
            f"{orbit.masses.min():.3f} to {orbit.masses.max():.3f}",
            len(orbit.images) == 8 and even,
        ),
        Claim(
            "One output weight is irrelevant (γ < 0.1), the other two relevant (γ > 0.9)",
            "γ = " + ", ".join(f"{g:.3f}" for g in outputs),
            bool((outputs < 0.1).sum() == 1 and (outputs > 0.9).sum() == 2),
        ),
        Claim(
            "The output bias is irrelevant (γ < 0.1, or less than 1 nat of evidence lost with it)",
            f"γ = {gamma['b[2][1]']:.3f}; without it log p(D|α) changes by {without_bias:+.2f}",
            bool(gamma["b[2][1]"] < 0.1 or without_bias > -1),
        ),
        Claim(
            "Newton's method converges in about 16 iterations (8 to 32)",
            f"median {typical:g} over {len(iterations)} optima of the mixture's evidence "
            f"({iterations.min()} to {iterations.max()})",
            8 <= typical <= 32,
        ),
        Claim(
            # One width alone is a quantile of few draws far out, known to a tenth or so.
            "NSBL and hierarchical Bayes predict alike (95 % bands differ by at most 25 %, mean of "
            "five points)",
            f"{100 * unlike:.0f} %; ratios of widths at x = −6, −3, 0, 3, 6: "
            + ", ".join(f"{r:.2f}" for r in ratio),
            unlike <= 0.25,
        ),
    ]
    edge = reference[[0, -1]].mean()
    for name, title in (
        ("standard", "Standard Bayes overfits"),
        ("laplace", "Laplace overfits"),
        ("laplace_nsbl", "Laplace with NSBL overfits"),
    ):
        times = widths(study.results[name])[[0, -1]].mean() / edge
        rows.append(
            Claim(
                f"{title} outside the data (band at ±6 over twice the hierarchical one)",
                f"{times:.1f} × as wide",
                bool(times > 2),
            )
        )
    rows.append(
        Claim(
            "NSBL needs fewer likelihood evaluations than hierarchical Bayes, all counted",
            f"{nsbl.n_evaluations:,} against {hierarchical.n_evaluations:,}",
            nsbl.n_evaluations < hierarchical.n_evaluations,
        )
    )
    return rows


def write_tables(study: Study, out: Path, judged: list[Claim]) -> dict[str, pd.DataFrame]:
    """All tables as CSV and LaTeX; the same seed gives the same bytes."""
    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "table1": table_1(study),
        "table2": table_2(study),
        "evidence": table_evidence(study),
        "scores": table_scores(study),
        "claims": pd.DataFrame(judged).set_index("claim"),
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


def mixture_of(result: Result):
    """The surrogate that NSBL maximised, rebuilt from the stored arrays."""
    from sbnn.evidence.mixture import GaussianMixture

    a = result.arrays
    return GaussianMixture(
        a["mixture_log_weights"],
        a["mixture_means"],
        a["mixture_covariances"],
        float(a["mixture_log_normaliser"]),
    )


def hyperprior_of(result: Result) -> Hyperprior:
    return Hyperprior(*result.settings["hyperprior"])
