"""What predictions of a fitted estimator need, as plain values and arrays.

Every posterior is a mixture of networks. Each has normal outputs: their variance is |M Jᵀ|² with
the Jacobian J in the parameters that are uncertain, and zero for posterior draws. J and the noise
are those at the nearest point in the range of the training inputs; beyond, the variance grows.
The noise is a mixture of normal distributions: σ² times 1/λ, for Student-t noise at several nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from sbnn import __version__
from sbnn.likelihoods.scale_mixture import SIGMA_NODES, precision_nodes
from sbnn.problems.network import layer_slices
from sbnn.tables.column_types import ColumnType
from sbnn.tables.encoder import ColumnEncoder
from sbnn.tables.input_column import BLANK
from sbnn.tables.numerals import OTHER, PLAIN, Signs

FORMAT = "sbnn mixture of networks 1"
VARYING = ("VaryingGaussian", "VaryingStudentT")
STUDENT = ("StudentT", "VaryingStudentT")
KINDS = ("Gaussian", "StudentT", *VARYING)

Arrays = Mapping[str, np.ndarray]


def contents(
    posterior: Any,
    scaling: Any,
    encoder: ColumnEncoder,
    names: Sequence[Any],
    flat: bool,
    types: Mapping[str, ColumnType] | None = None,
    signs: Signs = PLAIN,
) -> dict[str, Any]:
    """Everything that predictions need.

    Parameters
    ----------
    posterior : Posterior
        For standardised inputs and targets.
    scaling : Scaling
    encoder : ColumnEncoder
    names : sequence
        Of the columns of X.
    flat : bool
        Whether y had the shape (n,).
    types : mapping of str to ColumnType, optional
        How the columns were written in the file of the fit; as the encoder has them if None.
    signs : Signs
        In the numbers of that file.

    Returns
    -------
    dict
        Strings, numbers, arrays, and lists and dicts of these.

    Raises
    ------
    ValueError
        If the noise or the posterior cannot be exported.
    """
    arrays, plain = posterior.arrays()
    makers = {"laplace": _laplace, "draws": _draws, "last_layer": _last_layer}
    if posterior.kind not in makers:
        raise ValueError(f"A posterior of kind {posterior.kind!r} cannot be exported.")
    described = plain["layer"] if posterior.kind == "last_layer" else plain
    likelihood = described["likelihood"]["kind"]
    if likelihood not in KINDS:
        raise ValueError(
            f"A model with noise of type {likelihood} cannot be exported: its predictions are not "
            "mixtures of normal distributions. Use a kind of noise that sbnn provides."
        )
    if posterior.kind == "draws" and likelihood in STUDENT:
        raise ValueError(
            "A sampled posterior with Student-t noise cannot be exported; fit with "
            "method='laplace_nsbl', or with noise 'constant' or 'varying'."
        )
    varying = likelihood in VARYING
    z, w = np.polynomial.hermite_e.hermegauss(SIGMA_NODES)
    reach = {name: arrays[f"reach_{name}"] for name in ("lower", "upper", "slope")}
    groups = makers[posterior.kind](arrays, plain, likelihood)
    used = used_inputs(groups, reach["slope"])
    return {
        "format": FORMAT,
        "sbnn_version": __version__,
        "columns": [
            _column(name, column, (types or {}).get(name, column.type), used[encoder.groups == j])
            for j, (name, column) in enumerate(zip(names, encoder.columns))
        ],
        "decimal_sign": signs.decimal,
        "thousands_sign": OTHER[signs.decimal] if _has_thousands(signs) else "",
        "one_dimensional": bool(flat),
        "n_targets": int(scaling.n_outputs),
        **{name: np.asarray(value, dtype=float) for name, value in scaling._asdict().items()},
        "reach": reach,
        "precision_power": float(plain.get("precision_power", 0.0)),
        "varying": varying,
        # log σ ~ N(m, v) is replaced by nodes m + z √v.
        "sigma_nodes": z if varying else np.zeros(1),
        "sigma_shares": w / w.sum() if varying else np.ones(1),
        "groups": groups,
    }


def _has_thousands(signs: Signs) -> bool:
    """Whether the sign that is not decimal marks thousands in text cells."""
    return signs.thousands or (not signs.comma and signs.separator == ",")


def used_inputs(groups: Sequence[Mapping[str, Any]], slope: np.ndarray) -> np.ndarray:
    """Which encoded inputs change a prediction, shape (n_encoded,), bool."""
    used = (slope != 0.0).any(axis=1)
    for group in groups:
        weights = group["layers"][0]["weights"]  # (D, n_out, n_encoded)
        used |= (weights != 0.0).any(axis=(0, 1))
        first = group["uncertain"][group["uncertain"] < weights[0].size]
        used[first % len(used)] = True
    return used


def _column(name: Any, column: Any, written: ColumnType, used: np.ndarray) -> dict[str, Any]:
    """How a column of the table becomes inputs of the network."""
    out = {
        "name": str(name),
        "kind": column.kind if column.kind in ("empty", "category") else written.kind,
        "format": written.format,
        "parts": list(column.parts),
        "knots": list(column.knots),  # of hat functions, one for each but the first and the last
        "indicator": bool(column.indicator),
        "only": column.only,  # if all rows of the fit had this number, as it is encoded first
        "width": len(used),
        "used": used.tolist(),
    }
    if column.kind == "category":
        categories = list(column.counts or {})
        codes = column.one_hot.transform(np.array(categories, dtype=object)[:, None])
        out["codes"] = {c: [float(v) for v in code] for c, code in zip(categories, codes)}
        if column.has_blanks:
            out["codes"][""] = out["codes"][BLANK]
    return out


def _laplace(arrays: Arrays, plain: Mapping[str, Any], likelihood: str) -> list[dict[str, Any]]:
    groups, c = [], float(plain["inflation"])
    for k, optimum in enumerate(plain["optima"]):
        sizes, active = tuple(optimum["sizes"]), np.asarray(arrays[f"active_{k}"], dtype=int)
        phi = np.zeros(layer_slices(sizes)[-1][2])
        phi[active] = arrays[f"phi_{k}"]
        root = c * _root(arrays[f"factor_{k}"], arrays[f"scale_{k}"])
        weight, theta = arrays["weights"][k : k + 1], arrays[f"noise_{k}"][None].copy()
        if likelihood in VARYING:  # log σ is the second output of each target
            phi[layer_slices(sizes)[-1][1] + 1 :: 2] += np.log(c)
        else:
            theta[..., 0] += np.log(c)
        network = _network(sizes, optimum["activation"], phi[None])
        uncertain = {"uncertain": active, "root": root}
        groups.append({**network, **uncertain, "weight": weight, **_noise(likelihood, theta)})
    return groups


def _draws(arrays: Arrays, plain: Mapping[str, Any], likelihood: str) -> list[dict[str, Any]]:
    phi = arrays["phi"]
    network = _network(tuple(plain["sizes"]), plain["activation"], phi)
    uncertain = {"uncertain": np.zeros(0, dtype=int), "root": np.zeros((0, 0))}
    weight = np.full(len(phi), 1.0 / len(phi))
    return [{**network, **uncertain, "weight": weight, **_noise(likelihood, arrays["theta"])}]


def _last_layer(arrays: Arrays, plain: Mapping[str, Any], likelihood: str) -> list[dict[str, Any]]:
    """The output weights of the targets are independent: M has one block per target."""
    sizes = tuple(plain["sizes"])
    start, bias, _ = layer_slices(sizes)[-1]
    active, roots = [], []
    for k in range(sizes[-1]):
        kept = np.flatnonzero(np.isfinite(arrays[f"log_alpha_{k}"]))
        weights = start + k * sizes[-2] + kept
        active.append(np.where(kept == sizes[-2], bias + k, weights))
        roots.append(_root(arrays[f"factor_{k}"], arrays[f"scale_{k}"]))
    network = _network(sizes, plain["activation"], arrays["phi"][None])
    uncertain = {"uncertain": np.concatenate(active), "root": linalg.block_diag(*roots)}
    return [
        {**network, **uncertain, "weight": np.ones(1), **_noise(likelihood, arrays["theta"][None])}
    ]


def _root(factor: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """M = L⁻¹ A^-½ with MᵀM = H⁻¹."""
    if not len(scale):
        return np.zeros((0, 0))
    return linalg.solve_triangular(factor, np.diag(scale), lower=True)


def _network(sizes: tuple[int, ...], activation: str, phi: np.ndarray) -> dict[str, Any]:
    """Weights (D, n_out, n_in) and biases (D, n_out) of every layer, for D vectors φ."""
    layers = []
    for k, (start, bias, end) in enumerate(layer_slices(sizes)):
        weights = phi[:, start:bias].reshape(len(phi), sizes[k + 1], sizes[k])
        layers.append({"weights": weights, "biases": phi[:, bias:end]})
    return {"activation": activation, "layers": layers}


def _noise(likelihood: str, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Constants of the noise from its parameters, (D, n_targets, q).

    For constant noise `log_sigma`, (D, n_targets), otherwise empty. The variance is `variance` σ²,
    the inverse of the Fisher information `inverse_information` σ². `inverse_precisions` are the
    1/λ and `precision_shares` their weights, (D, n_targets, n_nodes).
    """
    ones = np.ones(theta.shape[:2])
    constants = {"variance": ones, "inverse_information": ones}
    inverse, shares = ones[..., None], ones[..., None]
    if likelihood in STUDENT:
        nu = 2.0 + np.exp(theta[..., -1])
        constants = {"variance": nu / (nu - 2.0), "inverse_information": (nu + 3.0) / (nu + 1.0)}
        nodes, weights, _ = precision_nodes(nu)
        inverse, shares = np.moveaxis(1.0 / nodes, 0, -1), np.moveaxis(weights, 0, -1)
    log_sigma = np.zeros((len(theta), 0)) if likelihood in VARYING else theta[..., 0]
    return {
        "log_sigma": log_sigma,
        **constants,
        "inverse_precisions": inverse,
        "precision_shares": shares,
    }
