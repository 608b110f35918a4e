"""Markov moves of a population of particles, one file per move; `Move` is their protocol.

A new move is one class with the members of `Move`; `tmcmc(move=...)` and `sbnn.standard(move=...)`
accept an instance of it.
"""

from sbnn.sampling.moves.base import (
    BlockInfo,
    Kernel,
    Move,
    Point,
    Tempered,
    halves,
    metropolis,
    moved,
)
from sbnn.sampling.moves.choice import STUCK, MoveChoice, choose, move_name
from sbnn.sampling.moves.hmc import HMC
from sbnn.sampling.moves.mutation import DECORRELATED, mutate
from sbnn.sampling.moves.random_walk import RandomWalk
from sbnn.sampling.moves.relabel import Relabel, relabel
from sbnn.sampling.moves.rescale import Rescale
from sbnn.sampling.moves.shaped_walk import ShapedWalk
from sbnn.sampling.state import MoveInfo, Particles

__all__ = [
    "DECORRELATED",
    "HMC",
    "STUCK",
    "BlockInfo",
    "Kernel",
    "Move",
    "MoveChoice",
    "MoveInfo",
    "Particles",
    "Point",
    "RandomWalk",
    "Relabel",
    "Rescale",
    "ShapedWalk",
    "Tempered",
    "choose",
    "halves",
    "metropolis",
    "move_name",
    "moved",
    "mutate",
    "relabel",
]
