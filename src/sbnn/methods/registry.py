"""Registry of the methods: name, title, colour, whether it samples, and its function."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbnn.methods.result import Result


@dataclass(frozen=True)
class Method:
    """A method of inference.

    Attributes
    ----------
    name : str
        Name in Python and on the command line.
    title : str
        Name in figures and reports.
    colour : str
        Used in all figures; Okabe and Ito's palette, safe for colour-blind readers.
    samples : bool
        Whether it draws posterior samples, which takes minutes and suits small networks.
    summary : str
        One line for help texts.
    module : str
        Module of its function, which has the same name; imported on first use. Empty if only the
        regressor has the method.
    """

    name: str
    title: str
    colour: str
    samples: bool
    summary: str
    module: str = ""

    def load(self) -> Callable[..., Result]:
        """The function of the method."""
        return getattr(importlib.import_module(self.module), self.name)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "laplace_nsbl",
            "Laplace with NSBL",
            "#CC79A7",
            False,
            "prunes weights the data do not support; no sampling",
            "sbnn.methods._laplace",
        ),
        Method(
            "laplace",
            "Laplace",
            "#D55E00",
            False,
            "the same without pruning",
            "sbnn.methods._laplace",
        ),
        Method(
            "nsbl",
            "NSBL",
            "#0072B2",
            True,
            "samples, prunes and verifies; minutes",
            "sbnn.methods._nsbl",
        ),
        Method(
            "standard",
            "Standard Bayes",
            "#E69F00",
            True,
            "samples under fixed wide priors; up to 30 parameters",
            "sbnn.methods._standard",
        ),
        Method(
            "hierarchical",
            "Hierarchical Bayes",
            "#009E73",
            True,
            "samples weights and their precisions together; up to 30 parameters",
            "sbnn.methods._hierarchical",
        ),
        Method(
            "last_layer",
            "Last layer",
            "#56B4E9",
            False,
            "trains the hidden layers, infers the output layer exactly; many rows",
            "sbnn.methods.last_layer.learn",
        ),
        Method(
            "layer_wise",
            "Layer-wise NSBL",
            "#999999",
            False,
            "adds hidden layers while the evidence rises, and prunes; deep networks",
        ),
    )
}
SAMPLING = tuple(name for name, method in METHODS.items() if method.samples)
AUTO = "laplace_nsbl"  # what method="auto" takes
COMPARED = ("laplace_nsbl", "laplace")  # what `sbnn compare` takes unless methods are named
VERIFIABLE = ("laplace_nsbl", "laplace", "layer_wise")  # with optima that sampling can verify
CHOICES = ("auto", *METHODS)


def title_of(name: str) -> str:
    """The title of a method, or the name itself if it is unknown."""
    return METHODS[name].title if name in METHODS else name


def colour_of(name: str) -> str:
    """The colour of a method, that of NSBL for an unknown name."""
    return METHODS.get(name, METHODS["nsbl"]).colour
