"""The report of one fit as an HTML page: verdict, figures and tables in a template."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from sbnn._core.atomic import write_text
from sbnn._core.extras import require
from sbnn._core.text import duration, names, number, unbroken, words
from sbnn._core.web_pages import content_security_policy, visible
from sbnn.methods.registry import title_of
from sbnn.regressor.noise import WORDS
from sbnn.reports import figures, noise_figures, score_tables
from sbnn.reports import network_graph as graphs
from sbnn.reports.fit import Fit
from sbnn.reports.glossary import GLOSSARY
from sbnn.reports.noise import outlier_limit
from sbnn.reports.output_paths import REPORT
from sbnn.reports.verdict import evidence_text


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
    # The text of the script, not a template: its digest is part of the page.
    script = (files("sbnn.reports") / "templates" / "fit.js").read_text(encoding="utf-8")
    for function in (number, names, unbroken, duration, words, with_options):
        environment.filters[function.__name__] = function
    one_input = len(fitted.features) == 1
    model = fitted.model
    return environment.get_template("fit.html").render(
        policy=content_security_policy(script),
        script=script,
        fit=fitted,
        record=fitted.record,
        method=title_of(model.method_used_),
        sentences=fitted.record.verdict,
        warnings=fitted.record.warnings,
        scores=score_tables.scores_table(fitted),
        curves=figures.curves(fitted) if one_input else figures.partial_dependence(fitted),
        observed=figures.observed(fitted),
        calibration=[*figures.calibration(fitted), *noise_figures.coverage(fitted)],
        noise_words=WORDS.get(model.noise_used_, model.noise_used_),
        noise_levels=noise_figures.levels(fitted),
        noise_kinds=score_tables.noise_table(fitted),
        outlier_limit=outlier_limit(fitted.y.size),
        pairs=figures.pairs(fitted),
        optimisation=figures.optimisation(fitted),
        graph=graphs.network_graph(fitted),
        relevance=score_tables.relevance_table(fitted),
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
