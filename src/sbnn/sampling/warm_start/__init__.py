"""Warm-start sequential Monte Carlo: from a Gaussian reference to the exact posterior."""

from sbnn.sampling.warm_start.reference import Reference
from sbnn.sampling.warm_start.sampler import WarmStartResult, init, step, warm_start
from sbnn.sampling.warm_start.shear import Shear, straight, straightened

__all__ = [
    "Reference",
    "Shear",
    "WarmStartResult",
    "init",
    "step",
    "straight",
    "straightened",
    "warm_start",
]
