"""One Laplace optimum: evidence, Levenberg–Marquardt steps, updates of α and the noise.

    log p(D|α, θ) ≈ log p(D|φ*, θ) + log p(φ*|α) + ½ d log 2π − ½ log|H|,   H = JᵀWJ + A,

with the Fisher information W of the outputs and A = diag(α). This is exact if the model is linear
in φ and the noise is Gaussian. For a parameter with a known prior, A holds the curvature of −log p.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sbnn.evidence.laplace.models.base import DataTerm, Model
from sbnn.evidence.laplace.models.layout import Array, FlatLayout, Layout
from sbnn.evidence.laplace.models.precision import Precision

LOG_2PI = float(np.log(2.0 * np.pi))
# Fraction of the predicted decrease that a step must achieve before the damping is reduced.
# Reducing it after every success made every second step fail.
TRUSTED = 0.5
# Precision of a flat known prior, relative to that of the data: H is unchanged to 12 digits and
# can be scaled as for ARD parameters.
FLAT = 1e-12
# Iterations between updates of the variances of the outputs, which change slowly and cost as much
# as a step.
VARIANCE_EVERY = 3


class UndeterminedError(ValueError):
    """Neither the data nor the prior determine some parameters at a point."""


@dataclass
class Optimum:
    """One sparse Laplace optimum.

    Attributes
    ----------
    phi : array, shape (d,)
        The mode, zero where pruned.
    log_alpha : array, shape (d,)
        ARD precisions, inf where pruned.
    noise : array, shape (K, q) or (K, n, q)
        Parameters of the likelihood; log σ for Gaussian noise.
    layout : Layout or FlatLayout
        The parameters kept.
    log_evidence : float
        Gauss–Newton log evidence, without the hyperprior.
    converged : bool
        Whether the evidence stopped rising before the iterations ran out.
    history : list of float
        Log evidence after every iteration.
    precision : Precision or None
        Factored on the active set, set when the fit is finished.
    variance : array or None
        Posterior variance of the outputs at the observations, from the last update.
    """

    phi: Array
    log_alpha: Array
    noise: Array
    layout: Any
    activation: str = "tanh"
    log_evidence: float = -np.inf
    damping: float = 1e-2
    iterations: int = 0
    converged: bool = False
    history: list[float] = field(default_factory=list)
    precision: Precision | None = None
    variance: Array | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.layout.sizes

    @property
    def active(self) -> Array:
        """Sorted indices of the parameters kept, shape (d_active,)."""
        return self.layout.active

    def copy(self) -> Optimum:
        """An independent copy."""
        return replace(
            self,
            phi=self.phi.copy(),
            log_alpha=self.log_alpha.copy(),
            noise=self.noise.copy(),
            history=list(self.history),
        )

    def with_noise(self, noise: Array) -> Optimum:
        """A copy with other parameters of the likelihood."""
        return replace(self.copy(), noise=noise)

    def without(self, dead: Array) -> Optimum:
        """A copy with the parameters `dead` (indices into φ) pruned."""
        new = self.copy()
        new.phi[dead], new.log_alpha[dead] = 0.0, np.inf
        kept = np.ones(len(self.phi), bool)
        kept[dead] = False
        new.layout = self.layout.restricted(self.active[kept[self.active]])
        return new


def initial(model: Model, rng: np.random.Generator) -> Optimum:
    """A random start of a model."""
    phi, log_alpha, noise = model.start(rng)
    layout: Layout | FlatLayout = model.layout()
    return Optimum(phi, log_alpha, noise, layout, model.activation)


def linearise(model: Model, opt: Optimum, outputs: Any = None) -> DataTerm:
    """The data term at an optimum; pass `outputs` if its φ has already been evaluated."""
    if outputs is None:
        outputs = model.evaluate(opt.phi, opt.layout)
    return model.data_term(outputs, opt.phi, opt.layout)


@dataclass(frozen=True)
class PriorTerm:
    """−log p(φ) at a point, up to constants of the ARD part: value, gradient, curvature."""

    energy: float
    gradient: Array
    precision: Array  # zero where a known prior is flat
    known: Array  # (d_active,), whether a parameter has a known prior


def prior_term(model: Model, opt: Optimum) -> PriorTerm:
    """½ Σ αφ² over ARD parameters, and the known priors of the others."""
    active = opt.active
    alpha, phi = np.exp(opt.log_alpha[active]), opt.phi[active]
    known = np.zeros(len(active), bool)
    energy, gradient, priors = (
        0.5 * float((alpha * phi * phi).sum()),
        alpha * phi,
        model.known_priors,
    )
    if priors is not None:
        at = np.searchsorted(active, priors.positions)
        known[at] = True
        energy -= 0.5 * float((alpha * phi * phi)[at].sum())
        value, slope, curvature = priors.at(opt.phi)
        energy += value
        gradient[at], alpha[at] = slope, curvature
    return PriorTerm(energy, gradient, alpha, known)


def _prior_energy(model: Model, opt: Optimum, phi: Array) -> float:
    """The energy of `prior_term` at another φ with the same α."""
    ard = opt.active
    energy = 0.0
    if model.known_priors is not None:
        ard = np.setdiff1d(ard, model.known_priors.positions, assume_unique=True)
        energy = model.known_priors.energy(phi)
    values = phi[ard]
    return energy + 0.5 * float((np.exp(opt.log_alpha[ard]) * values * values).sum())


def energy(model: Model, opt: Optimum) -> float:
    """−log p(D|φ) − log p(φ|α) up to a constant that does not depend on φ."""
    outputs = model.evaluate(opt.phi, opt.layout)
    return model.misfit(outputs, opt.noise) + _prior_energy(model, opt, opt.phi)


def information_diagonal(jac_t: Array, gram: Array | None) -> Array:
    """Diagonal of J̃ᵀJ̃, (d_active,), from what `DataTerm.weighted` returns."""
    return np.einsum("ij,ij->i", jac_t, jac_t) if gram is None else gram.diagonal()


def factorise(
    term: DataTerm, prior: PriorTerm, noise: Array, damping: float = 0.0
) -> tuple[Precision, Array]:
    """Factored H (or H + damping · diag H), and the prior precisions it contains."""
    jac_t, gram = term.weighted(noise)
    alpha = prior.precision
    if not damping and not prior.known.any():
        return Precision(jac_t, alpha, gram), alpha
    diagonal = information_diagonal(jac_t, gram)
    if prior.known.any():
        flat = prior.known & (alpha <= FLAT * diagonal)
        if (flat & (diagonal <= 0)).any():
            raise UndeterminedError(
                "The posterior precision is singular: a parameter without ARD is determined "
                "neither by the data nor by a curved prior."
            )
        alpha = np.where(flat, FLAT * diagonal, alpha)
    total = alpha + damping * (alpha + diagonal) if damping else alpha
    return Precision(jac_t, total, gram), alpha


def log_evidence(
    model: Model, opt: Optimum, term: DataTerm | None = None
) -> tuple[float, Precision]:
    """Gauss–Newton log evidence at (φ, α, θ), exact for linear models at the mode, and H.

    Parameters
    ----------
    model : Model
    opt : Optimum
    term : DataTerm, optional
        The data term at the optimum, if it has been computed.

    Returns
    -------
    log_evidence : float
    precision : Precision
    """
    term = linearise(model, opt) if term is None else term
    prior = prior_term(model, opt)
    precision, alpha = factorise(term, prior, opt.noise)
    # log_det is log|H| − Σ log α. For known priors, α is not part of p(φ*) and ½ log 2π remains.
    known = alpha[prior.known]
    value = (
        -term.misfit(opt.noise)
        - model.normaliser(opt.noise)
        - prior.energy
        - 0.5 * precision.log_det
        - 0.5 * np.log(known).sum()
        + 0.5 * len(known) * LOG_2PI
    )
    return float(value), precision


def lm_step(model: Model, opt: Optimum, term: DataTerm, tries: int = 6) -> tuple[DataTerm, float]:
    """One Levenberg–Marquardt step on −log p(D|φ) − log p(φ|α), in place.

    The model may add a correction, so that an output log σ maximises the evidence.
    Marquardt's scaling λ diag(H) makes the damping independent of the units of the parameters.
    Returns the data term at the new point and the decrease.
    """
    active = opt.active
    prior = prior_term(model, opt)
    noise, variance = opt.noise, opt.variance
    before = term.misfit(noise) + term.correction(noise, variance) + prior.energy
    gradient = term.gradient(noise, variance) - prior.gradient
    jac_t, gram = term.weighted(opt.noise)
    diagonal = prior.precision + information_diagonal(jac_t, gram)
    for _ in range(tries):
        change = factorise(term, prior, opt.noise, opt.damping)[0].solve(gradient)
        phi = opt.phi.copy()
        phi[active] += change
        outputs = model.evaluate(phi, opt.layout)
        after = model.misfit(outputs, noise) + model.correction(outputs, noise, variance)
        after += _prior_energy(model, opt, phi)
        if after <= before:  # NaN compares false: an overflowing step is rejected
            promised = 0.5 * float(change @ (gradient + opt.damping * diagonal * change))
            if before - after > TRUSTED * promised:
                opt.damping = max(opt.damping / 4.0, 1e-9)
            opt.phi = phi
            return linearise(model, opt, outputs), before - after
        opt.damping = min(opt.damping * 6.0, 1e8)
    return term, 0.0


def update(
    model: Model,
    opt: Optimum,
    term: DataTerm,
    precision: Precision,
    groups: Array | None,
    step: float,
) -> None:
    """Damped MacKay updates αᵢ = (γᵢ + 2s)/(φᵢ² + 2r), and of the noise, in place."""
    gamma = precision.relevance()
    active, hyperprior = opt.active, model.hyperprior
    num, den = gamma, opt.phi[active] ** 2
    if groups is not None:
        ids = groups[active]
        num, den = np.bincount(ids, num)[ids], np.bincount(ids, den)[ids]
    target = np.log(num + 2.0 * hyperprior.shape + 1e-300)
    target -= np.log(den + 2.0 * hyperprior.rate + 1e-300)
    change = np.clip(step * (target - opt.log_alpha[active]), -2.0, 2.0)
    change[~free(model, active)] = 0.0
    opt.log_alpha[active] = np.clip(opt.log_alpha[active] + change, -20.0, 35.0)
    likelihood = model.likelihood
    fresh = likelihood is None or not likelihood.needs_row_variances
    update_noise(model, opt, term, gamma, precision, fresh)


def update_noise(
    model: Model,
    opt: Optimum,
    term: DataTerm,
    gamma: Array,
    precision: Precision,
    fresh: bool = True,
) -> None:
    """Update the variance of the outputs and the parameters of the likelihood, in place."""
    if opt.variance is None or fresh or opt.iterations % VARIANCE_EVERY == 0:
        opt.variance = model.output_variance(term, opt.noise, gamma, precision)
    opt.noise = model.updated_noise(term, opt.noise, opt.variance)


def free(model: Model, active: Array) -> Array:
    """Which of the active parameters have an ARD prior."""
    if model.known_priors is None:
        return np.ones(len(active), bool)
    return ~np.isin(active, model.known_priors.positions)


def relax(model: Model, opt: Optimum, steps: int, tol: float = 1e-3) -> tuple[DataTerm, Precision]:
    """LM steps at fixed α and noise until one gains less than `tol`, and the evidence there."""
    term = linearise(model, opt)
    for _ in range(steps):
        term, decrease = lm_step(model, opt, term)
        if decrease < tol:
            break
    opt.log_evidence, precision = log_evidence(model, opt, term)
    return term, precision


def newton_step(model: Model, opt: Optimum) -> tuple[Array, float]:
    """The undamped step H⁻¹g, and the decrement gᵀH⁻¹g, which is zero at a mode."""
    term, prior = linearise(model, opt), prior_term(model, opt)
    gradient = term.gradient(opt.noise, opt.variance) - prior.gradient
    step = factorise(term, prior, opt.noise)[0].solve(gradient)
    return step, float(gradient @ step)


def is_determined(model: Model, opt: Optimum) -> bool:
    """Whether data and priors, not the substitute of a flat prior, determine every parameter.

    H contains `FLAT` times the precision of the data where a known prior is flat. Let v span a
    direction without effect. The substitute's share αᵢ(H⁻¹)ᵢᵢ of the variance of parameter i is
    then αᵢvᵢ²/Σαⱼvⱼ², at least 1/d for some i; otherwise it is below 10⁻² for all but hopelessly
    collinear parameters. Nor may a parameter vary by more than its box.
    """
    if model.known_priors is None:
        return True
    try:
        precision, alpha = factorise(linearise(model, opt), prior_term(model, opt), opt.noise)
    except (UndeterminedError, np.linalg.LinAlgError):
        return False
    at = np.searchsorted(opt.active, model.known_priors.positions)
    share = np.diag(precision.covariance(np.arange(len(alpha))))[at]
    flat = prior_term(model, opt).precision[at] < alpha[at]
    wide = np.sqrt(share / alpha[at]) > model.known_priors.widths / np.sqrt(12.0)
    return not bool((flat & (share > 0.5 / len(alpha))).any() or (flat & wide).any())


def polish(model: Model, opt: Optimum, max_steps: int = 50) -> Optimum:
    """The mode to more digits: undamped steps while they shrink.

    Near a maximum, the objective changes by less than its rounding error. The decrement gᵀH⁻¹g,
    the square of the next step in standard deviations, still distinguishes better from worse.
    """

    best = opt.copy()
    step, decrement = newton_step(model, best)
    for _ in range(max_steps):
        new = best.copy()
        new.phi[new.active] += step
        if not np.isfinite(_prior_energy(model, new, new.phi)):
            break  # the mode is at the edge of a prior's support
        new_step, new_decrement = newton_step(model, new)
        if not 0 <= new_decrement < decrement:
            break
        best, step, decrement = new, new_step, new_decrement
    best.log_evidence, best.precision = log_evidence(model, best)
    return best
