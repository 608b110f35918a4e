"""The report of the study: tables and figures on one HTML page that opens from disk."""

from __future__ import annotations

import base64
import io
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.extras import require
from sbnn._core.files.atomic import whole_file, write_bytes, write_text
from sbnn._core.web_pages import content_security_policy, visible
from sbnn.methods.registry import title_of
from sbnn.reports.live.page_data import as_script
from sbnn.study.claims import Claim, judge
from sbnn.study.claims import table as claims_table
from sbnn.study.explorer import N_DRAWS, explorer_data
from sbnn.study.figures import figures
from sbnn.study.runs import Study
from sbnn.study.tables import widths, write_tables

SCRIPTS = (("sbnn.reports", "charts.js"), ("sbnn.study", "explorer.js"))


def write_report(study: Study, out: Path) -> tuple[Path, list[Claim]]:
    """Write tables, figures (PNG and PDF) and report.html.

    Parameters
    ----------
    study : Study
    out : Path
        Folder to write to.

    Returns
    -------
    report : Path
        The page.
    claims : list of Claim
    """
    require("report", "A report", "jinja2", "matplotlib")
    from jinja2 import ChoiceLoader, Environment, PackageLoader, select_autoescape

    claims = judge(study)
    tables = write_tables(study, out, claims_table(claims))
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, title, caption, figure in figures(study):
        with whole_file(folder / f"{name}.pdf") as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        write_bytes(folder / f"{name}.png", buffer.getvalue())
        number = int(name[3:5])
        source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
        shown.append(
            {"id": name, "number": number, "title": title, "caption": caption, "source": source}
        )
    environment = Environment(
        # The charts of the explorer are those of the report of a fit.
        loader=ChoiceLoader([PackageLoader("sbnn.study"), PackageLoader("sbnn.reports")]),
        autoescape=select_autoescape(default=True),
        finalize=visible,
    )
    nsbl = study.results["nsbl"]
    script = "".join(
        (files(room) / "templates" / name).read_text(encoding="utf-8") for room, name in SCRIPTS
    )
    explored = explorer_data(study)
    page = environment.get_template("study.html").render(
        policy=content_security_policy(script),
        script=script,
        data=as_script(explored),
        n_draws=N_DRAWS,
        n_kernels=explored["nKernels"],
        figures={f["id"]: f for f in shown},
        tables={name: _html(table) for name, table in tables.items()},
        claims=claims,
        n_hold=sum(c.holds for c in claims),
        settings=study.settings,
        version=__version__,
        nsbl=nsbl,
        seconds={title_of(name): result.seconds for name, result in study.results.items()},
        widths={title_of(name): widths(result) for name, result in study.results.items()},
    )
    report = out / "report.html"
    write_text(report, page)
    return report, claims


def _html(table: pd.DataFrame) -> str:
    """A table as HTML; pandas escapes every cell."""

    def number(value: object) -> str:
        if isinstance(value, float):
            return "–" if np.isnan(value) else "∞" if np.isinf(value) else f"{value:.3f}"
        return f"{value:,}" if isinstance(value, int | np.integer) else str(value)

    return table.reset_index().to_html(
        index=False, border=0, escape=True, formatters=dict.fromkeys(table.columns, number)
    )
