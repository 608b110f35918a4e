"""Which pruned weights the exact evidence wants back, from draws of the posterior without them."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from sbnn.evidence.laplace.models.layout import Layout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, information_diagonal
from sbnn.evidence.laplace.options import TIE

N_DRAWS = 64
LOG_ALPHAS = np.linspace(-6.0, 12.0, 37)
MAX_RESTORED = 8  # weights per optimum


def gains(
    model: NetworkModel, opt: Optimum, draws: np.ndarray, log_alphas: np.ndarray = LOG_ALPHAS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What every pruned weight would add to the exact log evidence, at its best α.

    With draws of the other weights φ given w = 0 and prior variance v = 1/α of w,

        p(D|α) / p(D|w = 0) = E[∫ p(D|φ, w) / p(D|φ, 0) N(w|0, v) dw]
                            ≈ E[(1 + vh)^−½ exp(½ v g² / (1 + vh))]

    with the slope g of log p(D|φ, w) in w at zero and the Fisher information h. This is exact if
    the network is linear in w and the noise is Gaussian. If w is strongly correlated with other
    weights, the mean is dominated by rare draws, and a finite number of them underestimates it.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
    draws : ndarray, shape (n, n_active)
    log_alphas : ndarray
        Values of log α to try.

    Returns
    -------
    pruned : ndarray of int
        Positions of the weights in φ.
    gain, log_alpha : ndarray
        One each.
    """
    layout = Layout(opt.sizes)
    pruned = np.setdiff1d(layout.active, opt.active)
    phi, slopes, information = np.zeros(len(opt.phi)), [], []
    for draw in draws:
        phi[opt.active] = draw
        term = model.data_term(model.evaluate(phi, layout), phi, layout)
        slopes.append(term.gradient(opt.noise)[pruned])
        information.append(information_diagonal(*term.weighted(opt.noise))[pruned])
    g, h = np.array(slopes, dtype=float), np.array(information, dtype=float)  # (n, n_pruned)
    found = []
    for log_alpha in log_alphas:
        shrunk = 1.0 / (np.exp(log_alpha) + h)  # v / (1 + vh)
        log_ratio = 0.5 * (log_alpha + np.log(shrunk)) + 0.5 * shrunk * g**2
        found.append(logsumexp(log_ratio, axis=0) - np.log(len(draws)))
    table = np.array(found)  # (n_alphas, n_pruned)
    best = table.argmax(axis=0)
    return pruned, table[best, np.arange(len(pruned))], log_alphas[best]


def restored(model: NetworkModel, opt: Optimum, draws: np.ndarray) -> Optimum | None:
    """The optimum with the pruned weights that would add strong evidence, or None.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
    draws : ndarray, shape (n, n_active)
        Of its exact posterior.

    Returns
    -------
    Optimum or None
        At zero for the restored weights; its mode and precision are those before.
    """
    some = draws[:: max(1, len(draws) // N_DRAWS)]
    pruned, gain, log_alpha = gains(model, opt, some)
    order = np.argsort(-gain)[:MAX_RESTORED]
    chosen = order[gain[order] > TIE]
    if not len(chosen):
        return None
    new = opt.copy()
    new.log_alpha[pruned[chosen]] = log_alpha[chosen]
    new.layout = Layout(opt.sizes, np.sort(np.concatenate([opt.active, pruned[chosen]])))
    return new
