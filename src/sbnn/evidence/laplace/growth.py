"""Larger networks, where the data support most of the weights of the first ones."""

from __future__ import annotations

from dataclasses import replace

from sbnn.evidence.laplace.noise_choice import as_network, paths_for, with_noise
from sbnn.evidence.laplace.optimum import initial
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.laplace.stages import needs_more_rows, prune, raced, settle
from sbnn.evidence.starts import Stage, Start, run_stage

# Share of its weights that the best network keeps on the path to a sparse one, above which it is
# too small. On draws from Gaussian processes, larger networks gained 0.00 to 0.21 nats per
# unseen row where the share was 0.84 to 0.92, and lost 0.04 where it was 0.59.
SATURATED = 0.7
RACE, DENSE = Stage("training larger networks", 0.7, 0.03), Stage("training the better", 0.73, 0.03)
SETTLE, PRUNE = Stage("training on", 0.76, 0.04), Stage("pruning", 0.8, 0.05)


def grow(starts: list[Start], options: Options) -> list[Start]:
    """Starts of larger networks, pruned as far as `starts`, if these keep most of their weights.

    Parameters
    ----------
    starts : list of Start
        After the path to a sparse optimum.
    options : Options
        Its `larger` gives the hidden widths. No starts are added if it is empty, or if there are so
        many rows that training begins on a subset.

    Returns
    -------
    list of Start
        With the kind of noise of `starts`; empty if these are not saturated.
    """
    if not (options.larger and options.sparse) or needs_more_rows(starts[0].model, options):
        return []
    if options.watch.over or not _is_saturated(starts):
        return []
    model = as_network(starts[0].model)
    kind, (n_inputs, *_, n_outputs) = model.likelihood, model.sizes
    model = replace(model, sizes=(n_inputs, *options.larger, n_outputs))
    if model.noise is None:
        first = max((paths := paths_for(model.y_t)), key=lambda path: paths[path])
        model = model.with_likelihood(first)
    rngs = starts[0].rng.spawn(options.n_starts)
    larger = [Start(starts[0].family, model, initial(model, rng), rng) for rng in rngs]
    larger = raced(RACE, DENSE, larger, options)
    run = lambda stage, step: run_stage(stage, step, larger, options.n_threads, options.watch)
    larger = run(SETTLE, lambda s: settle(s, options))
    if model.noise is None:
        larger = with_noise(larger, kind, options)
    return run(PRUNE, lambda s: prune(s, options))


def _is_saturated(starts: list[Start]) -> bool:
    """Whether the best network has hidden layers and keeps more than `SATURATED` of its weights."""
    leader = max(starts, key=lambda s: s.optimum.log_evidence)
    if len(leader.optimum.sizes) == 2:
        return False
    return len(leader.optimum.active) > SATURATED * len(leader.model.layout().active)
