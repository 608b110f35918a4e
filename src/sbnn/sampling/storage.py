"""Checkpoint interface for samplers: read and write states, in named parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

Saved = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays and JSON values by name."""


class Companion(Protocol):
    """State kept alongside the computation, such as a record of failures."""

    def state(self) -> dict[str, Any]:
        """Plain values to store."""

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a stored state."""


@runtime_checkable
class Checkpoint(Protocol):
    """Where a computation, or a part of it, keeps its state."""

    def part(self, name: str) -> Checkpoint:
        """The checkpoint of a part of the computation."""

    def read(self) -> Saved | None:
        """Arrays and values as last written, or None."""

    def write(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        """Replace the stored state in one step."""

    def accompany(self, companion: Companion) -> None:
        """Store the companion's state with every part, and restore it when a part is read."""


class _NoCheckpoint:
    def part(self, name: str) -> Checkpoint:
        return self

    def read(self) -> Saved | None:
        return None

    def write(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        pass

    def accompany(self, companion: Companion) -> None:
        pass


NO_CHECKPOINT: Checkpoint = _NoCheckpoint()
"""Stores nothing."""


class Storable(Protocol):
    """A state that converts itself to arrays and plain values, and back."""

    def packed(self) -> Saved:
        """Arrays and plain values."""

    @classmethod
    def unpacked(cls, saved: Saved) -> Self:
        """The state from what `packed` returned."""


S = TypeVar("S", bound=Storable)


def kept(checkpoint: Checkpoint, kind: type[S], compute: Callable[[], S]) -> S:
    """The stored state, or else `compute()`, which is then stored.

    Parameters
    ----------
    checkpoint : Checkpoint
    kind : type
        Class of the state.
    compute : callable
        Called only if nothing is stored.

    Returns
    -------
    state
    """
    saved = checkpoint.read()
    if saved is not None:
        return kind.unpacked(saved)
    state = compute()
    checkpoint.write(*state.packed())
    return state
