"""The report of one fit as an HTML page: verdict, figures, tables and glossary in a template."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from sbnn._core.extras import require
from sbnn._core.files.atomic import write_text
from sbnn._core.text import duration, names, number, unbroken, words
from sbnn._core.web_pages import content_security_policy, visible
from sbnn.methods.registry import title_of
from sbnn.regressor.noise import WORDS
from sbnn.reports import score_tables
from sbnn.reports.account import formula, relevance_table
from sbnn.reports.columns import column_of, columns_table
from sbnn.reports.drawing import figures, noise_figures
from sbnn.reports.drawing import network_graph as graphs
from sbnn.reports.fit import Fit
from sbnn.reports.live.page_data import as_script, page_data
from sbnn.reports.live.rows import worst_rows
from sbnn.reports.live.suggested import next_measurements
from sbnn.reports.noise import about_size, has_heavy_tails, outlier_limit
from sbnn.reports.output_paths import REPORT
from sbnn.reports.sentences.verdict import evidence_text

# In this order: later scripts use earlier ones.
SCRIPTS = ("data.js", "predictor.js", "charts.js", "whatif.js", "rows.js", "fit.js")
GLOSSARY = {
    "optimum": "A fit that no small step improves. Different starts end in different optima, and "
    "the prediction averages the ones kept. The weight of an optimum is its share in this "
    "average; it is larger for optima that have more evidence, predict left-out rows better and "
    "are more certain.",
    "kept, pruned": "A pruned weight is one the data do not support: it is zero or, if it was "
    "sampled, its γ is below 0.1. All other weights are kept. Numbers of weights are those of all "
    "networks that the prediction averages, unless one of them is named.",
    "loss of an input": "How much worse left-out rows are predicted if the input is withheld: the "
    "mean loss of log density per row, in nats. Values of rows similar in the other inputs "
    "stand in for it, and the prediction averages over them. 0.1 nat corresponds to errors about "
    "10 % larger. Collinear inputs (correlation above 0.9) say much the same, so they are withheld "
    "together.",
    "evidence": "The probability density of the data under the model, averaged over all values of "
    "the weights. It rewards a good fit and penalises unnecessary weights. It is always given as "
    "a natural logarithm and can be compared between models of the same rows and target.",
    "nat": "The unit of natural logarithms. Models that differ by one nat in log evidence differ "
    "by a factor of 2.7 in probability; by five nats, of 148.",
    "α, log α": "The precision (one over the variance) of the prior of a weight, learned from the "
    "data. A large α holds the weight near zero; α = ∞ prunes it.",
    "γ, relevance": "How much the data determine a weight: from 0 (the prior alone) to 1 (the "
    "data alone).",
    "noise": "Scatter of the observations around the function, as a standard deviation; if it has "
    "heavy tails, as the distance within which 68 % of it lies. No model can predict it. Intervals "
    "include the noise and the uncertainty about the function.",
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


def write(fitted: Fit, folder: Path) -> Path:
    """Write the page into the folder of the fit.

    Parameters
    ----------
    fitted : Fit
    folder : Path

    Returns
    -------
    Path
        The page.
    """
    path = folder / REPORT
    write_text(path, render(fitted))
    return path


def render(fitted: Fit) -> str:
    """The page as HTML; the template escapes everything that comes from the user's table.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    str
    """
    require("report", "A report", "jinja2", "matplotlib")
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("sbnn.reports"),
        autoescape=select_autoescape(default=True),
        finalize=visible,
    )
    # The text of the scripts, not templates: their digest is part of the page.
    folder = files("sbnn.reports") / "templates"
    script = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    data, no_network = page_data(fitted)
    for function in (number, names, unbroken, duration, words, with_options):
        environment.filters[function.__name__] = function
    one_input = len(fitted.features) == 1
    curve = one_input and column_of(fitted, fitted.features[0]).kind not in ("category", "date")
    model = fitted.model
    return environment.get_template("fit.html").render(
        policy=content_security_policy(script),
        script=script,
        fit=fitted,
        record=fitted.record,
        method=title_of(model.method_used_),
        sentences=fitted.record.verdict,
        warnings=fitted.record.warnings,
        data=as_script(data),
        no_network=no_network,
        next_rows=next_measurements(fitted),
        n_effects=len(data["effects"]),
        worst=worst_rows(fitted),
        formula=formula(model, fitted.targets, digits=6),
        scores=score_tables.scores_table(fitted),
        baseline_note=score_tables.about_baselines(fitted),
        curves=figures.curves(fitted) if curve else [],
        calibration=[*figures.calibration(fitted), *noise_figures.coverage(fitted)],
        noise_words=WORDS.get(model.noise_used_, model.noise_used_),
        noise_sizes=about_size(fitted),
        heavy=has_heavy_tails(fitted),
        noise_levels=noise_figures.levels(fitted),
        noise_kinds=score_tables.noise_table(fitted),
        outlier_limit=outlier_limit(fitted.y.size),
        pairs=figures.pairs(fitted),
        optimisation=figures.optimisation(fitted),
        graph=graphs.network_graph(fitted),
        columns=columns_table(fitted),
        infinity=float("inf"),
        relevance=relevance_table(fitted),
        account=model.account_,
        optima=score_tables.optima_table(fitted),
        log_evidence=evidence_text(fitted),
        glossary=GLOSSARY,
        parameters=score_tables.parameter_table(fitted),
        mixture_size=len(model.optima_),
        sampled=model.posterior_.sampled,
        one_input=one_input,
        has_relevance=not np.isnan(model.relevance_).all(),
    )


def with_options(text: str) -> Markup:
    """The text, escaped, with options such as --hidden as code that does not wrap."""
    return Markup(re.sub(r"--[a-z][a-z-]*", r'<code class="whole">\g<0></code>', str(escape(text))))
