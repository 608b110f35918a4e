"""Everything the scripts of a report show, as JSON that is safe inside a page."""

from __future__ import annotations

import json
from typing import Any

from sbnn._core.web_pages import visible
from sbnn.reports.account import order_of_inputs
from sbnn.reports.fit import Fit
from sbnn.reports.live.effects import effect_data
from sbnn.reports.live.inputs import input_data
from sbnn.reports.live.network import network_data
from sbnn.reports.live.rows import row_data


def page_data(fitted: Fit) -> tuple[dict[str, Any], str]:
    """The data of a page, and why it has no network; "" if it has one.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    data : dict
        network (see `network_data`), inputs, their order by relevance, targets, rows, effects, and
        place, what the numbers of rows are.
    reason : str
    """
    network = network_data(fitted.model)
    reason = network if isinstance(network, str) else ""
    several = len(fitted.features) > 1
    data = {
        "network": None if reason else network,
        "inputs": input_data(fitted),
        "order": order_of_inputs(fitted.model).tolist(),
        "targets": [visible(target) for target in fitted.targets],
        "rows": row_data(fitted),
        "effects": effect_data(fitted) if several else [],
        "place": "line" if fitted.record.data.file else "row",
    }
    return data, reason


def as_script(data: Any) -> str:
    r"""JSON for the inside of a <script> element: no text in it ends the element or is markup.

    Parameters
    ----------
    data : Any

    Returns
    -------
    str

    Examples
    --------
    >>> print(as_script({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
