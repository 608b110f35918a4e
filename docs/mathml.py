"""Build hook: formulas become MathML, which browsers show without scripts or a network."""

import html
import re

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_page_content(content, **kwargs):
    """Replace every formula of a page."""

    def replace(match):
        display = "block" if match.group(2) == "[" else "inline"
        # The converter leaves no space between "log" and what follows.
        formula = re.sub(r"\\log(?![a-zA-Z])", r"\\log\\,", html.unescape(match.group(3)))
        return convert(formula.strip(), display=display)

    return FORMULA.sub(replace, content)
