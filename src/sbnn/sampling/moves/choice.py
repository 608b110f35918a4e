"""The move of a run: by name or as an object, and the one that takes over when it gets stuck."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sbnn.sampling.moves.base import Move
from sbnn.sampling.moves.hmc import HMC
from sbnn.sampling.moves.random_walk import RandomWalk
from sbnn.sampling.state import Evaluate, MoveInfo, Tuning

# The moves that can be chosen by name.
MOVES: dict[str, Callable[[], Move]] = {move.name: move for move in (RandomWalk, HMC)}
# Correlation of the log-likelihood, after all moves of a stage, above which a walk is stuck: on a
# 2-2-1 net with inferred noise it stayed near 0.8 and the log evidence was off by 30 nats.
STUCK = 0.5
# The cap of moves is divided by this when HMC takes over: each of its moves follows a gradient
# for several steps.
FEWER = 5


@dataclass(frozen=True)
class MoveChoice:
    """The first move of a run, and the fallback, if any, for when it gets stuck."""

    first: Move
    fallback: Move | None = None

    def start(self, n_parameters: int, max_moves: int) -> Tuning:
        """Tuning of the first moves."""
        return Tuning(self.first.name, self.first.initial_scale(n_parameters), max_moves)

    def current(self, tuning: Tuning) -> Move:
        """The move that `tuning` names."""
        if self.fallback is not None and tuning.move == self.fallback.name:
            return self.fallback
        return self.first

    def after(self, tuning: Tuning, info: MoveInfo, n_parameters: int) -> Tuning:
        """Tuning of the next moves: the scale reached, or the fallback if these got stuck."""
        stuck = info.correlation > STUCK
        if self.fallback is None or tuning.move == self.fallback.name or not stuck:
            return tuning._replace(scale=info.scale)
        scale = self.fallback.initial_scale(n_parameters)
        return Tuning(self.fallback.name, scale, max(2, tuning.max_moves // FEWER))


def choose(move: str | Move, evaluate: Evaluate | None = None) -> MoveChoice:
    """The moves that a name or an object selects.

    Parameters
    ----------
    move : {"auto", "random_walk", "hmc"} or Move
        "auto" is the random walk, with HMC as fallback if there are gradients.
    evaluate : callable, optional
        Evaluates a black-box likelihood, which has no gradients.

    Returns
    -------
    MoveChoice

    Raises
    ------
    ValueError
        For an unknown name, or a move that needs gradients for a black box.
    TypeError
        For an object that lacks members of `Move`.

    Examples
    --------
    >>> choose("auto").fallback.name
    'hmc'
    """
    if isinstance(move, str):
        if move == "auto":
            return MoveChoice(RandomWalk(), HMC() if evaluate is None else None)
        if move not in MOVES:
            raise ValueError(f"`move` must be one of {_names()}; got {move!r}.")
        move = MOVES[move]()
    elif not isinstance(move, Move):
        missing = [name for name in _MEMBERS if not hasattr(move, name)]
        raise TypeError(
            f"`move` must be one of {_names()}, or a sbnn.sampling.moves.Move; "
            f"{type(move).__name__} has no {', '.join(missing)}."
        )
    if move.needs_gradients and evaluate is not None:
        raise ValueError(f"`move`={move.name!r} needs gradients; a black-box likelihood has none.")
    return MoveChoice(move)


def _names() -> str:
    return ", ".join(map(repr, ("auto", *MOVES)))


_MEMBERS = (
    "name",
    "needs_gradients",
    "block",
    "evaluations_per_move",
    "target_acceptance",
    "initial_scale",
    "kernel",
)


def move_name(move: str | Move) -> str:
    """The name under which a move is recorded."""
    return move if isinstance(move, str) else move.name
