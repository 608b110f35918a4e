"""Forked processes: JAX does not survive a fork, so the error comes before the deadlock."""

from __future__ import annotations

import os
import sys

_unusable = False  # whether JAX was running in the parent when this process was forked


def _after_fork() -> None:
    global _unusable
    _unusable = _unusable or jax_is_running()


def jax_is_running() -> bool:
    """Whether JAX has started its devices and threads in this process; importing it does not."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None:
        return False
    # Not public; without it, a JAX that is only imported counts as running.
    started = getattr(bridge, "backends_are_initialized", lambda: True)
    return bool(started())


def require_usable_jax() -> None:
    """Raise RuntimeError in a forked child whose parent had started JAX.

    The threads of JAX do not exist in the child, which would wait for them forever. NumPy is not
    affected: `SparseBNNRegressor` fits and predicts in forked children unless it samples.
    """
    if _unusable:
        raise RuntimeError(
            "JAX cannot run in this process: its parent had started JAX before it forked, and "
            "JAX would wait forever. Start processes with 'spawn' or 'forkserver', for example "
            "multiprocessing.get_context('spawn'), or use loky or joblib."
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
