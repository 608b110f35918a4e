"""Runs of the study: five methods on the boxcar data, computed once and stored in files."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from sbnn import __version__, datasets
from sbnn._core.files.atomic import write_text
from sbnn._core.files.digests import check_mapping, seal_mapping
from sbnn.evidence.exact.cold import cold_evidence
from sbnn.evidence.laplace.models.problems import resting_log_alpha
from sbnn.io import load
from sbnn.methods._hierarchical import hierarchical
from sbnn.methods._laplace import laplace, laplace_nsbl
from sbnn.methods._nsbl import nsbl
from sbnn.methods._standard import standard
from sbnn.methods.details import Details
from sbnn.methods.orbits import Orbit
from sbnn.methods.result import Result
from sbnn.priors import Hyperprior
from sbnn.problems.network_regression import NetworkProblem, network_problem
from sbnn.sampling.checkpoints import CheckpointError

NOISE_STD = 0.5
# Moves per stage of standard Bayes: between one step of the boxcar and two, particles change places
# rarely, and a random walk needs thousands of moves to decorrelate.
MAX_MOVES = 2000
D = TypeVar("D", bound=Details)
Say = Callable[[str], None]


class Settings(NamedTuple):
    """Settings of a run; changing any of them recomputes it."""

    seed: int
    n_particles: int
    version: str = __version__

    @classmethod
    def of(cls, seed: int, quick: bool) -> Settings:
        return cls(seed, 800 if quick else 2000)


class Study(NamedTuple):
    """The contents of the report."""

    settings: Settings
    data: datasets.Dataset
    small: Result  # standard Bayes on the 1-2-1 net
    results: dict[str, Result]  # the five methods on the 1-3-1 net
    orbit: Orbit  # the best mode of the 1-2-1 posterior and its images
    laplace_exact: tuple[float, float]  # exact log evidence at the α of Laplace with NSBL


def problems(seed: int) -> tuple[datasets.Dataset, NetworkProblem, NetworkProblem]:
    """The data, the 1-2-1 and the 1-3-1 problem."""
    data = datasets.boxcar(seed=seed)
    two, three = (
        network_problem(data.x, data.y, (width,), "tanh", noise_std=NOISE_STD, bound=20.0)
        for width in (2, 3)
    )
    return data, two, three


def run(
    out: Path, seed: int = 0, quick: bool = False, force: bool = False, say: Say = print
) -> Study:
    """Compute the missing parts in `out` and return the study.

    Each part is one file, written atomically; parts with other settings are recomputed. An
    interrupted part continues from its last finished stage.

    Parameters
    ----------
    out : Path
    seed : int
        Seed of the noise in the data.
    quick : bool
        Fewer particles.
    force : bool
        Recompute parts that exist already.
    say : function of str
        Receives progress messages.

    Returns
    -------
    Study
    """
    settings = Settings.of(seed, quick)
    folder = out / "results"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "settings.json"
    if force or not _same_settings(stamp, settings):
        for old in folder.glob("*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        write_text(stamp, json.dumps(settings._asdict(), indent=1))
    data, two, three = problems(seed)
    done = _results(folder, two, three, settings.n_particles, say)
    laplace_exact = _laplace_exact(folder, three, done["laplace_nsbl"], settings.n_particles, say)
    small = done.pop("standard_121")
    return Study(settings, data, small, done, small.modes(8)[0], laplace_exact)


def _results(
    folder: Path, two: NetworkProblem, three: NetworkProblem, n: int, say: Say
) -> dict[str, Result]:
    """The runs of the study by name, each read from its file or computed and written."""

    def sampled(problem: NetworkProblem, key: int, checkpoint: Path) -> Result:
        return standard(problem, key, n, max_moves=MAX_MOVES, checkpoint=checkpoint)

    parts: dict[str, Callable[[Path], Result]] = {
        "standard_121": lambda c: sampled(two, 1, c),
        "standard": lambda c: sampled(three, 0, c),
        "nsbl": lambda c: nsbl(three, key=0, n_particles=n, mixture="kde", checkpoint=c),
        "hierarchical": lambda c: hierarchical(three, key=0, n_particles=n, checkpoint=c),
        "laplace": lambda c: laplace(three, key=0, n_particles=n),
        "laplace_nsbl": lambda c: laplace_nsbl(three, key=0, n_particles=n),
    }
    done: dict[str, Result] = {}
    for index, (name, compute) in enumerate(parts.items(), start=1):
        path, place = folder / f"{name}.nc", f"[{index}/{len(parts) + 1}] {name}:"
        result = _reuse(path)
        if result is None:
            say(f"{place} running")
            result = _continue(compute, folder / f"{name}.checkpoint", say)
            result.save(path, overwrite=True)
            shutil.rmtree(folder / f"{name}.checkpoint", ignore_errors=True)
            say(f"{place} {result.seconds:.0f} s, {result!r}")
        else:
            say(f"{place} already finished, reused")
        done[name] = result
    return done


def _laplace_exact(
    folder: Path, problem: NetworkProblem, sparse: Result, n: int, say: Say
) -> tuple[float, float]:
    """Exact log evidence at the α of Laplace with NSBL, and its error."""
    path = folder / "laplace_exact.json"
    found = _stored_evidence(path)
    if found is None:
        say("[7/7] exact evidence of Laplace's optimum: running")
        assert sparse.log_alpha is not None
        # A pruned parameter (α = ∞) is sampled where the hyperprior lets its α come to rest.
        rest = resting_log_alpha(Hyperprior())
        log_alpha = np.where(np.isinf(sparse.log_alpha), rest, sparse.log_alpha)
        exact = cold_evidence(problem, log_alpha, 7, n_particles=max(n // 2, 200))
        found = exact.log_evidence, exact.log_evidence_error
        write_text(path, json.dumps(seal_mapping({"log_evidence": found[0], "error": found[1]})))
    return found


def _stored_evidence(path: Path) -> tuple[float, float] | None:
    """The log evidence in a file and its error; None if the file is missing or damaged."""
    try:
        stored = json.loads(path.read_text())
        check_mapping(stored)
        return stored["log_evidence"], stored["error"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _same_settings(path: Path, settings: Settings) -> bool:
    try:
        return json.loads(path.read_text()) == settings._asdict()
    except (OSError, ValueError):
        return False


def _reuse(path: Path) -> Result | None:
    with contextlib.suppress(FileNotFoundError, ValueError):
        return load(path)
    return None


def _continue(compute: Callable[[Path], Result], checkpoint: Path, say: Say) -> Result:
    """Continue from the checkpoint of an interrupted run, or start over if it cannot be used."""
    try:
        return compute(checkpoint)
    except CheckpointError as error:
        say(f"Starting over: {error}")
        shutil.rmtree(checkpoint)
        return compute(checkpoint)


def details(result: Result, kind: type[D]) -> D:
    """Results specific to a method."""
    assert isinstance(result.details, kind)
    return result.details
