"""A network as a formula in plain text, in the units of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.problems.network import layer_slices
from sbnn.regressor.data.scaling import Scaling
from sbnn.tables.encoder import ColumnEncoder

# Formulas of more weights are not shown in reports and on the terminal.
SMALL = 16
_ACTIVATIONS = {
    "tanh": "tanh({})",
    "relu": "max({}, 0)",
    "sigmoid": "1/(1 + exp(-({})))",
    "softplus": "log(1 + exp({}))",
    "sin": "sin({})",
    "identity": "({})",
}
_BOUNDED = ("tanh", "sigmoid", "sin")


def symbols(encoder: ColumnEncoder, features: Sequence[str]) -> list[str]:
    """How a formula writes the inputs of the network.

    A number is its column's name, in backticks if it is not a plain word. Other inputs are in
    brackets: [city = Rome] is 1 if the city is Rome and 0 otherwise, [zone, near 2] is 1 at 2, 0 at
    1 and 3 and beyond, and linear between.
    """
    out = []
    for name, column in zip(features, encoder.columns):
        for text in ColumnEncoder((column,)).names([name]):
            if text == str(name):
                out.append(text if text.isidentifier() else f"`{text}`")
            else:
                out.append(f"[{text}]")
    return out


def formula_of(
    opt: Optimum,
    scaling: Scaling,
    inputs: Sequence[str],
    targets: Sequence[str],
    outputs_per_target: int = 1,
    digits: int = 12,
) -> str:
    """The mean prediction of one optimum as text, one line per target.

    Networks with several hidden layers define the neurons h1_1, h1_2, … of all but the last one in
    lines of their own.

    Parameters
    ----------
    opt : Optimum
    scaling : Scaling
    inputs, targets : sequence of str
        Symbols of the inputs of the network and of the targets.
    outputs_per_target : int
        Further outputs, such as log σ, are left out.
    digits : int
        Significant digits of the coefficients.

    Returns
    -------
    str
    """
    lines: list[str] = []
    terms = list(inputs)
    layers = layer_slices(opt.sizes)
    for k, (start, middle, end) in enumerate(layers):
        w = opt.phi[start:middle].reshape(opt.sizes[k + 1], opt.sizes[k])
        b = opt.phi[middle:end]
        last = k == len(layers) - 1
        if k == 0:  # from standardised to original units
            w = w / scaling.x_scale
            b = b - w @ scaling.x_centre
        elif opt.activation in _BOUNDED:  # leave out what the digits do not show
            least = 10.0**-digits * np.maximum(np.abs(w).max(axis=1), np.abs(b))
            w = np.where(np.abs(w) < least[:, None], 0.0, w)
            b = np.where(np.abs(b) < least, 0.0, b)
        if last:
            chosen = slice(None, None, outputs_per_target)
            w = w[chosen] * scaling.y_scale[:, None]
            b = b[chosen] * scaling.y_scale + scaling.y_centre
            rows = zip(targets, w, b)
            return "\n".join(lines + [f"{t} = {_sum(ws, c, terms, digits)}" for t, ws, c in rows])
        needed = opt.layout.alive[k + 1].tolist()  # neurons connected to the output
        texts = [
            _ACTIVATIONS[opt.activation].format(_sum(w[i], b[i], terms, digits)) if i in needed
            else "0" for i in range(len(w))
        ]  # fmt: skip
        if k < len(layers) - 2:
            names = [f"h{k + 1}_{i + 1}" for i in range(len(w))]
            lines += [f"{names[i]} = {texts[i]}" for i in needed]
            texts = names
        terms = texts
    raise AssertionError("a network has an output layer")


def _sum(weights: Array, bias: float, terms: Sequence[str], digits: int) -> str:
    """b + Σ w·term as text, without terms of weight zero."""
    parts = [(float(w), term) for w, term in zip(weights, terms) if w != 0.0]
    out = ""
    if bias != 0.0 or not parts:
        out = f"{bias:.{digits}g}"
    for w, term in parts:
        size = f"{abs(w):.{digits}g}*{term}"
        if not out:
            out = size if w > 0 else f"-{size}"
        else:
            out += f" + {size}" if w > 0 else f" - {size}"
    return out
