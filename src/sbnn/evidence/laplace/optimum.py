"""One sparse Laplace optimum: its evidence, Levenberg–Marquardt steps, updates of α and σ².

    log p(D|α, σ²) ≈ log p(D|φ*) − ½ φ*ᵀAφ* + ½ Σ log α − ½ log|H|,   H = Σ JᵀJ/σ² + A,

exact if the network is linear in φ. The (2π)^{d/2} of the Gaussian integral cancels the prior's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sbnn.evidence.laplace.layout import (
    Array,
    Layout,
    Pass,
    backward_pass,
    forward_pass,
    layer_slices,
)
from sbnn.evidence.laplace.precision import Precision

LOG_2PI = float(np.log(2.0 * np.pi))
# Share of the decrease a step promised that it must bring for the next one to be damped less. Going
# bolder after every success made every second step fail.
TRUSTED = 0.5
FEW_INPUTS, STEEP = 3, 12.0
E10 = float(np.exp(-10.0))
# Of standardised outputs: exact interpolation would otherwise send σ² to zero.
VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True)
class Model:
    """Data, network and prior: everything that stays fixed while an optimum is sought.

    Parameters
    ----------
    x_t : array, shape (n_in, n)
        Inputs, one column per observation.
    y_t : array, shape (n_out, n)
    sizes : tuple of int
        (n_in, hidden…, n_out).
    activation : str
    noise_variance : array, shape (n_out,), or None
        Known σ²; None infers it.
    shared_noise : bool
        One inferred σ² for all outputs instead of one per output.
    shape, rate : float
        Hyperprior log p(log α) = s log α − r α.
    known_precision : array, shape (d,), or None
        Precision of the parameters with a known N(0, 1/p) prior, NaN where ARD applies.
    """

    x_t: Array
    y_t: Array
    sizes: tuple[int, ...]
    activation: str = "tanh"
    noise_variance: Array | None = None
    shared_noise: bool = False
    shape: float = E10
    rate: float = E10
    known_precision: Array | None = None

    def rows(self, index: Array) -> Model:
        """The same model on a subset of the observations."""
        x_t, y_t = self.x_t[:, index], self.y_t[:, index]
        return replace(self, x_t=np.ascontiguousarray(x_t), y_t=np.ascontiguousarray(y_t))

    def single(self) -> Model:
        """The same model with data, Jacobians and Gram matrices in single precision."""
        return replace(self, x_t=self.x_t.astype(np.float32), y_t=self.y_t.astype(np.float32))

    def free(self, active: Array) -> Array:
        """Which of the active parameters have an ARD prior."""
        if self.known_precision is None:
            return np.ones(len(active), bool)
        return np.isnan(self.known_precision[active])


@dataclass
class Optimum:
    """One sparse Laplace optimum.

    Attributes
    ----------
    phi : array, shape (d,)
        The mode, zero where pruned.
    log_alpha : array, shape (d,)
        ARD precisions, inf where pruned.
    log_variance : array, shape (n_out,)
        log σ².
    layout : Layout
        The weights kept.
    log_evidence : float
        Gauss–Newton log evidence, hyperprior not included.
    converged : bool
        Whether the evidence had stopped rising when the iteration ended.
    history : list of float
        Log evidence after every iteration.
    precision : Precision or None
        Factored on the active set when the fit is finished.
    """

    phi: Array
    log_alpha: Array
    log_variance: Array
    layout: Layout
    activation: str = "tanh"
    log_evidence: float = -np.inf
    damping: float = 1e-2
    iterations: int = 0
    converged: bool = False
    history: list[float] = field(default_factory=list)
    precision: Precision | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.layout.sizes

    @property
    def active(self) -> Array:
        """Sorted indices of the weights kept, shape (d_active,)."""
        return self.layout.active

    def copy(self) -> Optimum:
        return replace(
            self,
            phi=self.phi.copy(),
            log_alpha=self.log_alpha.copy(),
            log_variance=self.log_variance.copy(),
            history=list(self.history),
        )

    def without(self, dead: Array) -> Optimum:
        """A copy with the weights `dead` (indices into φ) pruned."""
        new = self.copy()
        new.phi[dead], new.log_alpha[dead] = 0.0, np.inf
        active = np.setdiff1d(self.active, dead, assume_unique=True)
        new.layout = Layout(self.sizes, active)
        return new


class Linearised:
    """Residuals and Jacobian at an optimum, with Gram matrices that survive changes of α and σ."""

    def __init__(self, model: Model, opt: Optimum, done: Pass | None = None):
        if done is None:
            done = forward_pass(opt.phi, model.x_t, opt.layout, model.activation)
        self.jac = backward_pass(done, opt.layout, model.activation)
        self.residual = model.y_t - done.output
        d, n_out, n = self.jac.shape
        self.primal = d <= n_out * n
        self.grams: list[Array] = []
        if self.primal:
            self.grams = [
                (self.jac[:, o] @ self.jac[:, o].T).astype(float, copy=False) for o in range(n_out)
            ]

    @property
    def flat(self) -> Array:
        """Jᵀ with outputs and rows in one axis, shape (d, n_out · n)."""
        d, n_out, n = self.jac.shape
        return self.jac.reshape(d, n_out * n)

    def weighted(self, log_variance: Array) -> tuple[Array, Array | None]:
        """J̃ᵀ and J̃ᵀJ̃ at noise σ²; J̃ᵀ itself is only formed where it is needed (d > n)."""
        if self.primal:
            gram = sum(np.exp(-v) * g for v, g in zip(log_variance, self.grams))
            return self.flat, np.asarray(gram)
        scaled = self.jac * np.exp(-0.5 * log_variance)[:, None]
        return scaled.reshape(self.flat.shape), None

    def precision(self, opt: Optimum) -> Precision:
        jac_t, gram = self.weighted(opt.log_variance)
        return Precision(jac_t, np.exp(opt.log_alpha[opt.active]), gram)


def _energy(residual: Array, log_variance: Array, alpha: Array, phi: Array) -> float:
    residual = residual.astype(float, copy=False)
    misfit = (np.einsum("ij,ij->i", residual, residual) * np.exp(-log_variance)).sum()
    return 0.5 * float(misfit + (alpha * phi * phi).sum())


def log_evidence(
    model: Model, opt: Optimum, lin: Linearised | None = None
) -> tuple[float, Precision]:
    """Gauss–Newton log evidence at (φ, α, σ²), exact for linear models at their mode; and H."""
    lin = Linearised(model, opt) if lin is None else lin
    precision = lin.precision(opt)
    n_out, n = model.y_t.shape
    alpha = np.exp(opt.log_alpha[opt.active])
    value = (
        -_energy(lin.residual, opt.log_variance, alpha, opt.phi[opt.active])
        - 0.5 * precision.log_det
        - 0.5 * n * opt.log_variance.sum()
        - 0.5 * n * n_out * LOG_2PI
    )
    return float(value), precision


def lm_step(
    model: Model, opt: Optimum, lin: Linearised, tries: int = 6
) -> tuple[Linearised, float]:
    """One Levenberg–Marquardt step on ½ Σ r²/σ² + ½ φᵀAφ, in place.

    Marquardt's scaling λ diag(H) makes the damping independent of the units of the weights.
    Returns the linearisation at the new point and the decrease.
    """
    active, log_variance = opt.active, opt.log_variance
    alpha = np.exp(opt.log_alpha[active])
    jac_t, gram = lin.weighted(log_variance)
    before = _energy(lin.residual, log_variance, alpha, opt.phi[active])
    weighted = lin.residual * np.exp(-log_variance)[:, None].astype(lin.jac.dtype)
    grad = lin.flat @ weighted.ravel() - alpha * opt.phi[active]
    diag = alpha + (np.einsum("ij,ij->i", jac_t, jac_t) if gram is None else np.diag(gram))
    for _ in range(tries):
        change = Precision(jac_t, alpha + opt.damping * diag, gram).solve(grad)
        phi = opt.phi.copy()
        phi[active] += change
        done = forward_pass(phi, model.x_t, opt.layout, model.activation)
        after = _energy(model.y_t - done.output, log_variance, alpha, phi[active])
        if after <= before:  # NaN compares false: an overflowing step is refused
            promised = 0.5 * float(change @ (grad + opt.damping * diag * change))
            if before - after > TRUSTED * promised:
                opt.damping = max(opt.damping / 4.0, 1e-9)
            opt.phi = phi
            return Linearised(model, opt, done), before - after
        opt.damping = min(opt.damping * 6.0, 1e8)
    return lin, 0.0


def update(model, opt, lin, precision, groups, step) -> None:
    """Damped MacKay updates αᵢ = (γᵢ + 2s)/(φᵢ² + 2r) and σ² = Σr²/(N − Σγ), in place."""
    gamma = precision.relevance()
    active = opt.active
    num, den = gamma, opt.phi[active] ** 2
    if groups is not None:
        ids = groups[active]
        num, den = np.bincount(ids, num)[ids], np.bincount(ids, den)[ids]
    target = np.log(num + 2.0 * model.shape + 1e-300) - np.log(den + 2.0 * model.rate + 1e-300)
    change = np.clip(step * (target - opt.log_alpha[active]), -2.0, 2.0)
    change[~model.free(active)] = 0.0
    opt.log_alpha[active] = np.clip(opt.log_alpha[active] + change, -20.0, 35.0)
    if model.noise_variance is not None:
        return
    n_out, n = model.y_t.shape
    rss = (lin.residual.astype(float, copy=False) ** 2).sum(axis=1)
    if model.shared_noise or n_out == 1:
        rss, used, n_eff = np.full(n_out, rss.sum()), gamma.sum(), n * n_out
    else:  # the share of output k in Σγ is tr(J_k H⁻¹ J_kᵀ) / σ_k²
        used = precision.variance(lin.flat).reshape(n_out, n).sum(axis=1)
        used, n_eff = used * np.exp(-opt.log_variance), n
    target = np.log(rss / np.maximum(n_eff - used, 1.0) + VARIANCE_FLOOR)
    opt.log_variance = opt.log_variance + np.clip(target - opt.log_variance, -1.0, 1.0)


def relax(model: Model, opt: Optimum, steps: int) -> tuple[Linearised, Precision]:
    """A few LM steps at fixed α and σ², and the evidence there."""
    lin = Linearised(model, opt)
    for _ in range(steps):
        lin, decrease = lm_step(model, opt, lin)
        if decrease < 1e-3:
            break
    opt.log_evidence, precision = log_evidence(model, opt, lin)
    return lin, precision


def initial(model: Model, rng: np.random.Generator) -> Optimum:
    """A random start: W ~ N(0, 1/n_in), b ~ N(0, 1), α to match, σ² a tenth of the variance.

    With few inputs every second start is steeper: its first layer bends up to `STEEP` times as
    often over the data. A smooth start does not find its way to a function with many bends.
    """
    phi_parts, alpha_parts = [], []
    n_out = model.sizes[-1]
    for n_in, width in zip(model.sizes[:-1], model.sizes[1:]):
        phi_parts += [rng.standard_normal(n_in * width) / np.sqrt(n_in), rng.standard_normal(width)]
        alpha_parts += [np.full(n_in * width, np.log(n_in)), np.zeros(width)]
    if model.sizes[0] <= FEW_INPUTS and len(model.sizes) > 2 and rng.random() < 0.5:
        steepness = np.exp(rng.uniform(0.0, np.log(STEEP)))
        for k in (0, 1):
            phi_parts[k] *= steepness
            alpha_parts[k] -= 2.0 * np.log(steepness)
    phi, log_alpha = np.concatenate(phi_parts), np.concatenate(alpha_parts)
    phi[-n_out:] = 0.0
    if model.known_precision is not None:
        known = ~np.isnan(model.known_precision)
        log_alpha[known] = np.log(model.known_precision[known])
    variance = 0.1 if model.noise_variance is None else model.noise_variance
    log_variance = np.log(np.broadcast_to(variance, n_out))
    return Optimum(phi, log_alpha, log_variance, Layout(model.sizes), model.activation)


def layer_groups(sizes: tuple[int, ...]) -> Array:
    """Group numbers, one per weight matrix and one per bias vector, shape (d,)."""
    lengths = [n for s, m, e in layer_slices(sizes) for n in (m - s, e - m)]
    return np.repeat(np.arange(len(lengths)), lengths)
