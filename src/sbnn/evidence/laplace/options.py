"""Settings of the fit of a mixture of sparse optima."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sbnn._core.watch import NEVER, Watch

TIE = 3.0  # nats, a Bayes factor of 20: less is not strong evidence for more parameters


@dataclass(frozen=True)
class Options:
    """Settings of `fit`.

    Attributes
    ----------
    n_starts : int
        Number of starts per family.
    group_iterations : int
        Iterations with one α per weight matrix and bias vector. This stage finds a good dense fit;
        with one α per weight from a random start, weights would be pruned before the network fits.
    settle : int
        Most blocks of iterations with shared α that may follow; see `stages.settle`.
    patient : int
        Blocks without a gain after which no more follow.
    path_iterations, iterations : int
        Iterations with one α per weight: after each step of `thin`, and at most at its best state.
        Converged optima stop earlier.
    race, keep : float
        Fraction of the starts of each architecture that continue after a third of the first stage,
        and fraction of these kept in the end, by evidence.
    step, tol : float
        Damping of the update of log α; change of the log evidence over ten iterations below which
        an optimum counts as converged.
    patience : int
        Iterations without a rise of the evidence after which an optimum counts as converged.
    alike : float
        Before the last stage, optima are merged if their functions differ by less than this many
        standard errors.
    neuron_moves : int
        Units tried per round of `remove_units` if at most `FEW_WEIGHTS` weights are left.
    price : float
        Log evidence that a weight must add to be kept in the end. The maximum over log α is higher
        than the mean over a prior of log α: for a prior with a standard deviation of 5 and the
        curvature ½ of a well-determined weight, by log(5 √½) = 1.26 nats. Without a price, pure
        noise seems to support a weight or two.
    weighting : str
        See `mixture_weights`.
    max_rows : int
        With more observations the first stage runs on a random subset and then, for `ON_MORE`
        iterations, on more of them (`stages.on_more_rows`), after which `race` of the starts
        continue. Pruning uses as many rows, and the last stage all of them.
    precision_power : float
        See `SparseMixture`.
    n_threads : int
        Starts that run in parallel; the result does not depend on it.
    sparse : bool
        False stops after the first stage: one α per weight matrix and bias vector, no pruning.
    calibrate : bool
        Whether the error of the mean of the targets and, with few rows, that of α and the noise are
        part of the predictions. For standardised targets.
    max_columns : int
        With more inputs, `relevant_columns` chooses columns first.
    larger : tuple of int
        Hidden widths of networks that join if the others keep most of their weights; see `grow`.
    linear : bool
        Whether a network without hidden layers joins the first family.
    constant : bool
        Whether a constant replaces networks that are less probable than it; see `unless_constant`.
    watch : Watch
        Progress, and the end of the fit.
    """

    n_starts: int = 16
    group_iterations: int = 45
    settle: int = 8
    patient: int = 2
    path_iterations: int = 8
    iterations: int = 300
    race: float = 0.5
    keep: float = 1.0
    step: float = 0.5
    tol: float = 0.05
    patience: int = 15
    alike: float = 0.0
    neuron_moves: int = 3
    price: float = 1.25
    weighting: str = "mixed"
    max_rows: int = 2500
    precision_power: float = 1.0
    n_threads: int = 1
    sparse: bool = True
    calibrate: bool = True
    max_columns: int = 40
    larger: tuple[int, ...] = ()
    linear: bool = False
    constant: bool = False
    watch: Watch = NEVER


DEFAULT = Options()
# Options that differ for few rows: two to three times as fast. With settings close to these, unseen
# rows of 17 kinds of synthetic tables of 6 to 100 rows lost at most 0.03 nats beyond two standard
# errors, and those of yacht gained 0.10 ± 0.08; but energy, with 690 rows, lost 0.2.
FOR_FEW_ROWS: dict[str, Any] = {
    "group_iterations": 30,
    "patient": 1,
    "race": 0.375,
    "patience": 10,
    "alike": 0.25,
}
# For networks of a few dozen weights: every optimum is converged and every neuron tried.
SMALL = Options(
    settle=0,
    iterations=300,
    tol=1e-3,
    race=1.0,
    keep=0.5,
    neuron_moves=60,
    price=0.0,
    calibrate=False,
)
# For networks of more weights: many starts, most of which end early, and the others are trained on.
# On 6-4-1 and the yacht data, 400 starts end at 501 to 525 nats, 100 with `SMALL` at 472 to 488.
MANY_STARTS = replace(SMALL, settle=20, race=0.1, group_iterations=150)
