"""Messages about last-layer learning."""

from __future__ import annotations

from dataclasses import dataclass

from sbnn._core.messages import Message
from sbnn._core.text import plural


@dataclass(frozen=True)
class EvidenceMaximised(Message, code="evidence_maximised"):
    """α and the noise maximise the evidence."""

    def __str__(self) -> str:
        return "reached a maximum of the evidence"


@dataclass(frozen=True)
class EvidenceNotMaximised(Message, code="evidence_not_maximised"):
    """The search for the maximum of the evidence was stopped."""

    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return "stopped before a maximum of the evidence was reached"


@dataclass(frozen=True)
class Interpolated(Message, code="interpolated"):
    """The features reproduce y exactly, so that the noise has no best level above zero."""

    n_kept: int
    n_rows: float
    noise_std: float
    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return (
            f"{plural(self.n_kept, 'feature')} reproduce {self.n_rows:.0f} rows of y exactly, so "
            f"that the evidence grows without bound as the noise vanishes; it is held at "
            f"{self.noise_std:.3g}. Give `noise_std`, more rows or fewer features."
        )


@dataclass(frozen=True)
class FeaturesFitted(Message, code="features_fitted"):
    """The hidden layers were fitted to few rows for the number of their weights."""

    n_weights: int
    n_rows: float

    def __str__(self) -> str:
        return f"{self._facts()}; with so few rows, use method='laplace_nsbl'."

    def for_command_line(self) -> str:
        return f"{self._facts()}; with so few rows, leave out --method."

    def _facts(self) -> str:
        return (
            f"The {self.n_weights} weights of the hidden layers were fitted to {self.n_rows:.0f} "
            "rows and then taken as known, so intervals are too narrow"
        )


@dataclass(frozen=True)
class EvidenceBound(Message, code="evidence_bound"):
    """The log evidence is a variational lower bound."""

    def __str__(self) -> str:
        return "With Student-t noise, the log evidence is a lower bound."
