"""The posterior as a mixture of sparse Laplace optima: weights, predictions, draws, compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from sbnn.evidence.laplace.layout import Array, Layout, forward, jacobian, layer_slices
from sbnn.evidence.laplace.optimum import LOG_2PI, Linearised, Model, Optimum
from sbnn.evidence.laplace.precision import Precision


class Trial(NamedTuple):
    """Hidden widths of a family of architectures, and the best log evidence it reached on trial."""

    hidden_layer_sizes: tuple[tuple[int, ...], ...]
    log_evidence: float


@dataclass(frozen=True)
class SparseMixture:
    """A mixture over sparse Laplace optima, best evidence first.

    Attributes
    ----------
    optima : tuple of Optimum
        Each with its factored `precision`.
    weights : array, shape (K,)
        Sum to one.
    precision_power : float
        The p of the local weights w_k(x) ∝ w_k v_k(x)^−p used in predictions: an optimum that is
        unsure at x has less say there. With p = 1 the mean is the inverse-variance combination of
        the optima; p = 0 is the plain mixture.
    trials : tuple of Trial
        The families of architectures that were compared, in the order given.
    """

    optima: tuple[Optimum, ...]
    weights: Array
    precision_power: float = 1.0
    trials: tuple[Trial, ...] = ()


def merge(
    pairs: Sequence[tuple[Model, Optimum]], log_tol: float = 0.1, fit_tol: float = 0.05
) -> list[tuple[Model, Optimum]]:
    """Drop near-duplicates and sort by evidence.

    Duplicates have the same architecture, evidence within `log_tol` and functions within `fit_tol`
    noise standard deviations (RMS). Permuting neurons or flipping signs changes neither, so this
    compares modulo the symmetry group without walking through its elements. How often an optimum
    was found tells how wide its basin of attraction is, not how probable it is: each counts once.
    """
    kept: list[tuple[Model, Optimum]] = []
    fits: list[Array] = []
    # Of two twins the sparser one stays.
    for model, opt in sorted(pairs, key=lambda pair: len(pair[1].active)):
        f = forward(opt.phi, model.x_t, opt.layout, opt.activation)
        scale = np.exp(-0.5 * opt.log_variance)[:, None]
        same = any(
            o.sizes == opt.sizes
            and abs(o.log_evidence - opt.log_evidence) < log_tol
            and np.sqrt(np.mean(((f - g) * scale) ** 2)) < fit_tol
            for (_, o), g in zip(kept, fits)
        )
        if not same:
            kept.append((model, opt))
            fits.append(f)
    return sorted(kept, key=lambda pair: -pair[1].log_evidence)


def loo_log_density(model: Model, opt: Optimum) -> Array:
    """Leave-one-out log predictive density of each row in the linearised model, shape (n,).

    With leverage h = J H⁻¹Jᵀ/σ²: residual r/(1 − h), variance σ²/(1 − h). Outputs one by one.
    """
    lin = Linearised(model, opt)
    precision = lin.precision(opt) if opt.precision is None else opt.precision
    log_var = opt.log_variance[:, None]
    variance = precision.variance(lin.flat).reshape(lin.residual.shape)
    keep = 1.0 - np.clip(variance * np.exp(-log_var), 0.0, 0.99)
    misfit = lin.residual**2 * np.exp(-log_var) / keep
    return -0.5 * (misfit + log_var - np.log(keep) + LOG_2PI).sum(axis=0)


def mixture_weights(kind: str, log_evidences: Array, loo: Array | None = None) -> Array:
    """Weights of the optima, shape (K,).

    "equal"; "evidence"; "flat": evidence^(1/√n); "stacking": maximal leave-one-out predictive
    density `loo` of shape (K, n), by EM; "mixed": a fifth of stacking, the rest equal. Evidence
    alone picks one optimum, and its Gauss–Newton value is too rough for that; stacking alone
    overfits the leave-one-out densities of small tables (yacht: RMSE up from 0.22 to 0.38), a
    little of it raises the predictive density everywhere.
    """
    k = len(log_evidences)
    if kind == "evidence":
        return special.softmax(log_evidences)
    if kind not in ("equal", "flat", "stacking", "mixed"):
        raise ValueError(
            f"`weighting` must be 'equal', 'evidence', 'flat', 'stacking' or 'mixed'; got {kind!r}."
        )
    equal = np.full(k, 1.0 / k)
    if kind == "equal":
        return equal
    assert loo is not None
    if kind == "flat":
        return special.softmax(np.asarray(log_evidences) / np.sqrt(loo.shape[1]))
    weights = equal
    for _ in range(100):
        weights = special.softmax(np.log(weights + 1e-300)[:, None] + loo, axis=0).mean(axis=1)
    return weights if kind == "stacking" else 0.8 * equal + 0.2 * weights


def components(mixture: SparseMixture, x_t: Array, block: int = 2048):
    """Per optimum: mean of f, its variance J H⁻¹ Jᵀ, and the noise variance.

    Shapes (K, n_out, m), (K, n_out, m) and (K, n_out, 1).
    """
    means, variances = [], []
    for opt in mixture.optima:
        mean_parts, variance_parts = [], []
        for start in range(0, max(x_t.shape[1], 1), block):
            part = x_t[:, start : start + block]
            f, jac = jacobian(opt.phi, part, opt.layout, opt.activation)
            mean_parts.append(f)
            flat = jac.reshape(len(opt.active), f.size)
            variance_parts.append(precision_of(opt).variance(flat).reshape(f.shape))
        means.append(np.concatenate(mean_parts, axis=1))
        variances.append(np.concatenate(variance_parts, axis=1))
    noise = np.array([np.exp(opt.log_variance) for opt in mixture.optima])[:, :, None]
    return np.array(means), np.array(variances), noise


def local_weights(mixture: SparseMixture, total_variance: Array) -> Array:
    """w_k(x) ∝ w_k v_k(x)^−p, of the shape of `total_variance`, (K, n_out, m)."""
    log_w = np.log(mixture.weights + 1e-300)[:, None, None]
    return special.softmax(log_w - mixture.precision_power * np.log(total_variance), axis=0)


def gaussian_components(mixture: SparseMixture, x_t: Array, noise: bool = True):
    """The predictive mixture at every point: weights, means and stds, each (K, n_out, m).

    The weights always come from the total variance, so that predictions with and without noise
    have the same mean.
    """
    mean, variance, noise_variance = components(mixture, x_t)
    weights = local_weights(mixture, variance + noise_variance)
    return weights, mean, np.sqrt(variance + (noise_variance if noise else 0.0))


def sample(
    mixture: SparseMixture,
    x_t: Array,
    n_draws: int,
    rng: np.random.Generator,
    noise: bool = False,
) -> Array:
    """Draws of (linearised) functions, shape (n_draws, n_out, m).

    Jointly Gaussian over x within an optimum. Optima are drawn by the mean of their local weights
    over the points asked for: a function is one draw and cannot change its optimum from x to x,
    but its share then agrees with the predictive mixture on average. It does so for every output:
    one random number per draw picks the optimum of each by its own shares, the same one where they
    agree.
    """
    edges = np.cumsum(shares_at(mixture, x_t), axis=0)
    # Stratified: of n draws each optimum has its share, up to one.
    level = (rng.permutation(n_draws) + rng.random(n_draws)) / n_draws
    which = (level[:, None, None] > edges[:-1].T).sum(axis=2)  # (n_draws, n_out)
    out = np.empty((n_draws, edges.shape[1], x_t.shape[1]))
    for k, opt in enumerate(mixture.optima):
        rows = np.flatnonzero((which == k).any(axis=1))
        f, jac = jacobian(opt.phi, x_t, opt.layout, opt.activation)
        draws = f + np.einsum("dom,dc->com", jac, precision_of(opt).draw(rng, len(rows)))
        if noise:
            scale = np.exp(0.5 * opt.log_variance)[:, None]
            draws += scale * rng.standard_normal(draws.shape)
        own = which[rows] == k
        out[rows] = np.where(own[:, :, None], draws, out[rows])
    return out


def shares_at(mixture: SparseMixture, x_t: Array) -> Array:
    """The part of every optimum in predictions at some points, per output: (K, n_out)."""
    return gaussian_components(mixture, x_t)[0].mean(axis=2)


def precision_of(opt: Optimum) -> Precision:
    assert opt.precision is not None
    return opt.precision


def restricted(opt: Optimum, keep: Array) -> Optimum:
    """The posterior of the optimum given that all active weights but `keep` are zero."""
    new, precision = opt.without(opt.active[~keep]), precision_of(opt)
    b = (precision.chol @ precision.chol.T)[np.ix_(keep, keep)]
    factor = np.linalg.cholesky(b) if len(b) else b
    new.precision = Precision.from_factor(factor, precision.scale[keep])
    return new


def needed(opt: Optimum, x_t: Array, threshold: float) -> Optimum:
    """Without the weights whose share in any prediction is below `threshold` of its std.

    Of weight i that is |Jᵢφᵢ| in the mean and Jᵢ²(H⁻¹)ᵢᵢ in the variance.
    """
    f, jac = jacobian(opt.phi, x_t, opt.layout, opt.activation)
    precision = precision_of(opt)
    variance = precision.variance(jac.reshape(len(jac), f.size)).reshape(f.shape)
    std = np.sqrt(variance + np.exp(opt.log_variance)[:, None])
    own = precision.scale * np.sqrt(1.0 - precision.relevance())
    largest = (np.abs(jac) / std).max(axis=(1, 2), initial=0.0)
    shift, spread = largest * np.abs(opt.phi[opt.active]), 0.5 * (largest * own) ** 2
    return restricted(opt, np.maximum(shift, spread) >= threshold)


def compacted(opt: Optimum) -> Optimum:
    """The optimum in a network without neurons that have no way to the output.

    Weights unseen have no part in J: for them B is the identity, and the others do not notice.
    """
    opt = restricted(opt, ~opt.layout.unseen)
    layout = opt.layout
    inner = [np.asarray(a) for a in layout.alive[1:-1]]
    if any(len(a) == 0 for a in inner):  # a constant: the output biases alone
        inner = []
        blocks = [layer_slices(layout.sizes)[-1]]
        columns = [np.arange(layout.sizes[0])]
        old = np.full((layout.sizes[-1], layout.sizes[0]), -1)
        index = [np.r_[old.ravel(), np.arange(blocks[0][1], blocks[0][2])]]
    else:
        columns = [np.arange(layout.sizes[0]), *inner, np.arange(layout.sizes[-1])]
        index = []
        for k, (s, m, _) in enumerate(layer_slices(layout.sizes)):
            matrix = np.arange(s, m).reshape(layout.sizes[k + 1], layout.sizes[k])
            index += [matrix[np.ix_(columns[k + 1], columns[k])].ravel(), m + columns[k + 1]]
    origin = np.concatenate(index)
    sizes = (layout.sizes[0], *(len(a) for a in inner), layout.sizes[-1])
    place = {int(i): j for j, i in enumerate(origin) if i >= 0}
    active = np.array([place[int(i)] for i in layout.active], dtype=int)
    phi = np.where(origin >= 0, opt.phi[origin], 0.0)
    log_alpha = np.where(origin >= 0, opt.log_alpha[origin], np.inf)
    return replace(opt, phi=phi, log_alpha=log_alpha, layout=Layout(sizes, active))
