"""Messages about a run: a code with values, worded once for Python and once for the command line.

A message is a small frozen dataclass. `str(message)` is its wording for Python users,
`message.for_command_line()` that for users of the command line, whose remedies differ. Files store
the code and the values; nothing ever parses a sentence.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sbnn._core.text import plural

# A few points of zero likelihood are normal: the priors are wide.
FEW_REJECTED = 0.01
MANY_UNDEFINED = 0.1  # fraction of prior draws with NaN or +inf: more than a corner of the prior
_REMEDY = (
    "Try another --seed or a smaller --hidden, or --method laplace_nsbl, which does not sample"
)

_classes: dict[str, type[Message]] = {}


class Message:
    """Something the user should know about a run.

    Attributes
    ----------
    code : str
        Identifies the kind of message, in files and in code.
    warns : {"ConvergenceWarning", "RuntimeWarning"} or None
        Category of the warning issued in Python; None if the message is only part of the result.
    """

    code: ClassVar[str]
    warns: ClassVar[Literal["ConvergenceWarning", "RuntimeWarning"] | None] = None

    def __init_subclass__(cls, code: str) -> None:
        cls.code = code
        _classes[code] = cls

    def __str__(self) -> str:
        raise NotImplementedError

    def for_command_line(self) -> str | None:
        """The wording for the command line; None if it is not shown there."""
        return str(self)

    @property
    def category(self) -> type[Warning] | None:
        """The class of the warning, or None."""
        if self.warns is None:
            return None
        if self.warns == "RuntimeWarning":
            return RuntimeWarning
        from sklearn.exceptions import ConvergenceWarning  # takes half a second, rarely needed

        return ConvergenceWarning

    def as_json(self) -> dict[str, Any]:
        """The code and the values, as JSON can store them."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"code": self.code, **{f.name: _to_json(getattr(self, f.name)) for f in fields}}


def from_json(stored: Mapping[str, Any]) -> Message:
    """The message that `Message.as_json` stored.

    Raises
    ------
    ValueError
        If the code is unknown or the values do not belong to it.
    """
    values = {name: _from_json(value) for name, value in stored.items() if name != "code"}
    try:
        return _classes[stored["code"]](**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{stored!r} is not a stored message") from error


def for_command_line(messages: Iterable[Message]) -> list[str]:
    """Unique wordings for the command line, in order."""
    texts = (message.for_command_line() for message in messages)
    return list(dict.fromkeys(text for text in texts if text is not None))


def warn(messages: Iterable[Message], stacklevel: int = 2) -> None:
    """Issue the messages that are warnings; `caught` gets them back.

    Parameters
    ----------
    messages : iterable of Message
    stacklevel : int
        As for `warnings.warn`, seen from the caller.
    """
    for message in messages:
        if message.category is not None:
            warnings.warn(message.category(message), stacklevel=stacklevel + 1)


def caught(warning: Warning | str) -> Message | None:
    """The message that a warning carries; None for warnings from elsewhere."""
    carried = warning.args[0] if isinstance(warning, Warning) and warning.args else None
    return carried if isinstance(carried, Message) else None


def _to_json(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return list(value) if isinstance(value, tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return from_json(value)
    return tuple(value) if isinstance(value, list) else value


# ------------------------------------------------------------------------------- how a run ended
@dataclass(frozen=True)
class SamplingFinished(Message, code="sampling_finished"):
    """TMCMC reached β = 1, and all its stages mixed."""

    def __str__(self) -> str:
        return "reached β = 1; particles decorrelated in every stage"

    def for_command_line(self) -> str:
        return "finished normally"


@dataclass(frozen=True)
class SamplingSlow(Message, code="sampling_slow"):
    """TMCMC reached β = 1, but some stages hit the cap of moves before they had mixed."""

    n_stages: int
    correlation: float  # the largest, of the log-likelihood with its value before the moves

    def __str__(self) -> str:
        return (
            "reached β = 1, but particles had not decorrelated after all moves of "
            f"{plural(self.n_stages, 'stage')} (correlation up to {self.correlation:.2f})"
        )

    def for_command_line(self) -> str:
        return (
            f"in {plural(self.n_stages, 'stage')} the draws still resembled those they came from "
            f"(correlation up to {self.correlation:.2f}; below 0.2 is fine)"
        )


@dataclass(frozen=True)
class SamplingStopped(Message, code="sampling_stopped"):
    """TMCMC ran out of stages before it reached β = 1."""

    beta: float
    n_stages: int

    def __str__(self) -> str:
        return f"stopped at β = {self.beta:.3g} after {plural(self.n_stages, 'stage')}"

    def for_command_line(self) -> str:
        return (
            f"sampling stopped after {plural(self.n_stages, 'stage')}, before the data had "
            f"full weight ({self.beta:.3g} of 1)"
        )


@dataclass(frozen=True)
class SearchEnded(Message, code="search_ended"):
    """How Newton's ascent of the mixture's evidence and the exact run at the optimum ended."""

    newton: str
    exact: Message

    def __str__(self) -> str:
        return f"Newton: {self.newton}; exact run: {self.exact}"

    def for_command_line(self) -> str | None:
        return self.exact.for_command_line()


@dataclass(frozen=True)
class ModeReached(Message, code="mode_reached"):
    """The climb to the posterior mode converged."""

    def __str__(self) -> str:
        return "reached a posterior mode"


@dataclass(frozen=True)
class ModeNotReached(Message, code="mode_not_reached"):
    """The climb to the posterior mode was stopped."""

    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return "stopped before a posterior mode was reached; try another start or other priors"


# --------------------------------------------------------------------------- about a result
@dataclass(frozen=True)
class PointsRejected(Message, code="points_rejected"):
    """The likelihood was zero or not a number at some points."""

    n_rejected: int
    n_evaluations: int
    undefined: float = 0.0  # fraction of prior draws with NaN or +inf

    @property
    def category(self) -> type[Warning] | None:
        return RuntimeWarning if self.undefined > MANY_UNDEFINED else None

    def __str__(self) -> str:
        if self.undefined > MANY_UNDEFINED:
            return (
                f"The log-likelihood is NaN or +inf at {100 * self.undefined:.0f} % of the prior "
                "draws; those points count as impossible, and evidence and posterior are wrong if "
                "they are not. Fix the function, or return −inf where the likelihood is zero."
            )
        return (
            f"The log-likelihood was NaN or −inf in {self.n_rejected} of {self.n_evaluations} "
            "evaluations; those points were rejected."
        )

    def for_command_line(self) -> str | None:
        few = self.n_rejected < FEW_REJECTED * self.n_evaluations
        return None if few else str(self)


@dataclass(frozen=True)
class SamplerStuck(Message, code="sampler_stuck"):
    """The moves of the sampler were too slow for its result to be trusted."""

    outcome: Message
    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return (
            f"The sampler got stuck: it {self.outcome}. The log evidence may be off by far more "
            "than its error. Raise `max_moves`, or write the log-likelihood with jax.numpy."
        )

    def for_command_line(self) -> str:
        return (
            f"The sampler got stuck: {self.outcome.for_command_line()}. The log evidence may be "
            f"off by far more than its error. {_REMEDY}."
        )


@dataclass(frozen=True)
class FirstRunStuck(Message, code="first_run_stuck"):
    """The run that proposes candidates was too slow; later runs verify its proposals."""

    outcome: Message
    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return (
            f"The first run got stuck: it {self.outcome}. Later runs verify its proposals, but "
            "an optimum may have been missed. Try another key, or raise `n_particles`."
        )

    def for_command_line(self) -> str:
        return (
            f"The first run got stuck: {self.outcome.for_command_line()}. Later runs verify its "
            f"proposals, but an optimum may have been missed. {_REMEDY}."
        )


@dataclass(frozen=True)
class NotVerified(Message, code="not_verified"):
    """The estimated and the exact log evidence at the final α disagree."""

    estimate: float
    exact: float
    exact_error: float
    tolerance: float
    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return (
            f"Not verified: the estimated log evidence {self.estimate:.2f} and the exact one "
            f"{self.exact:.2f} ± {self.exact_error:.2f} differ by more than {self.tolerance} nat. "
            "Raise `n_particles`, or do not rely on this α."
        )

    def for_command_line(self) -> str:
        return (
            f"Not verified: the estimated and the exact log evidence differ by more than "
            f"{self.tolerance} nat. {_REMEDY}; or do not rely on the pruning."
        )


@dataclass(frozen=True)
class HyperpriorTooCoarse(Message, code="hyperprior_too_coarse"):
    """The rate of the hyperprior, not the data, keeps parameters from being pruned."""

    names: tuple[str, ...]
    rate: float
    smaller_rate: float  # one that allows pruning

    def __str__(self) -> str:
        return (
            f"The hyperprior's rate {self.rate:.2g} keeps the precision of "
            f"{', '.join(self.names)} too low to prune, however irrelevant. Rescale these "
            f"parameters, or use sbnn.priors.Hyperprior(rate={self.smaller_rate:.0e})."
        )

    def for_command_line(self) -> str:
        return (
            f"This method limits prior precisions and could not have pruned "
            f"{', '.join(self.names)}, relevant or not. --method laplace_nsbl has no such limit."
        )


@dataclass(frozen=True)
class FunctionFailed(Message, code="function_failed"):
    """A black-box function raised errors or killed its worker."""

    n_failed: int
    names: tuple[str, ...]
    theta: tuple[float, ...]  # where it failed first
    error: str
    warns = "RuntimeWarning"

    def __str__(self) -> str:
        where = ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.names, self.theta))
        return (
            f"The function failed in {plural(self.n_failed, 'evaluation')}, counted as −inf (zero "
            f"likelihood); see `result.failures`. The first failure, at {where}: {self.error}."
        )


@dataclass(frozen=True)
class FreeDirections(Message, code="free_directions"):
    """The data say less about some directions of the mode than the prior does."""

    n_directions: int

    def __str__(self) -> str:
        return (
            f"The data say less than the prior about {plural(self.n_directions, 'direction')} of "
            "parameter space at the mode."
        )


@dataclass(frozen=True)
class OptimaNotConverged(Message, code="optima_not_converged"):
    """Some optima of a Laplace mixture ran out of iterations."""

    n_late: int
    n_optima: int
    n_iterations: int
    change: float | None  # of the log evidence over the last ten iterations; None: too few of them
    sparse: bool = True  # whether weights are pruned
    warns = "ConvergenceWarning"

    def _facts(self) -> str:
        steps = plural(self.n_iterations, "iteration")
        text = f"{self.n_late} of {self.n_optima} optima had not converged after {steps}: "
        if self.change is None:
            text += "the log evidence was still changing"
        else:
            most = f"up to {self.change:.1f}" if self.change >= 0.1 else "less than 0.1"
            text += f"the log evidence changed by {most} nat in the last ten"
        change = float("inf") if self.change is None else self.change
        if self.sparse:
            text += f", {'but' if change < 0.1 else 'and'} more weights might have been pruned"
        rough = f". Treat the evidence{' and the pruning' * self.sparse} as rough."
        return text + (rough if change > 1 else ".")

    def __str__(self) -> str:
        more = max(500, 2 * self.n_iterations)
        return f"{self._facts()} Allow more iterations: method_options={{'iterations': {more}}}."

    def for_command_line(self) -> str:
        return f"{self._facts()} The scores on unseen rows are still valid."


# --------------------------------------------------------------------------- choice of a method
@dataclass(frozen=True)
class MethodRequested(Message, code="method_requested"):
    """The user named the method."""

    def __str__(self) -> str:
        return "requested"


@dataclass(frozen=True)
class MethodChosen(Message, code="method_chosen"):
    """method="auto" chose the sampling-free method."""

    def __str__(self) -> str:
        return "needs no sampling; method='nsbl' samples and verifies small networks"

    def for_command_line(self) -> str:
        return "needs no sampling; --method nsbl samples and verifies small networks"
