"""Build hook that converts formulas to MathML, which browsers show without scripts or network."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_page_content(content: str, **kwargs: Any) -> str:
    """The page with every formula as MathML."""

    def replace(match: re.Match[str]) -> str:
        display = "block" if match.group(2) == "[" else "inline"
        # The converter puts no space between "log" and its argument.
        formula = re.sub(r"\\log(?![a-zA-Z])", r"\\log\\,", html.unescape(match.group(3)))
        return convert(formula.strip(), display=display)

    return FORMULA.sub(replace, content)
