"""Predictions of a fitted sparse Bayesian neural network; needs NumPy only.

    from model import predict
    mean, std, interval = predict(X, return_std=True, return_interval=0.95)

X has one row per case, in the order of `COLUMNS`; a dict of columns or a DataFrame may have more
columns, in any order. Cells are read as in the fit: numbers that are text have the decimal sign and
the thousands of the table, percentages a percent sign, dates its format. In columns that the
networks use, cells must not be missing, and categories must be those of the fit. A new value in a
column that was the same in all rows of the fit raises a warning: its effect is not known.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
import warnings
from typing import Any

import numpy as np

MODEL = "{}"  # replaced by the model
N_COMPONENTS = 2_000_000  # of all rows that are predicted at a time

# Rational approximations of erf and erfc (Cody, 1969; coefficients of the Cephes library).
_T = (9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3,
      7.00332514112805075473e3, 5.55923013010394962768e4)  # fmt: skip
_U = (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
      2.26290000613890934246e4, 4.92673942608635921086e4)  # fmt: skip
_P = (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687,
      4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
      9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2)  # fmt: skip
_Q = (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
      9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
      1.65666309194161350182e3, 5.57535340817727675546e2)  # fmt: skip
_YES = "true, yes, on, t, y, ja, wahr, oui, vrai, sí, si, sì, vero, verdadero, sim"
_NO = "false, no, off, f, n, nein, falsch, non, faux, falso, não"
_WORDS = {**dict.fromkeys(_YES.split(", "), 1.0), **dict.fromkeys(_NO.split(", "), 0.0)}
_MISSING = {"", "na", "n/a", "nan", "+nan", "-nan", "null", "none", "?", "-", "#n/a", "nat", "<na>"}
_SPACES = "[ '’\u00a0\u202f]"
_CURRENCY = r"(US\$|[$€£¥₹]|USD|EUR|GBP|CHF)"
_SAME = {"US$": "$", "USD": "$", "EUR": "€", "GBP": "£"}
_AMOUNT = re.compile(rf"([+-]?){_CURRENCY}\s?([+-]?[\d.,].*)|(.*\d)\s?{_CURRENCY}")
_SPACED = re.compile(rf"[+-]?\d{{1,3}}({_SPACES}\d{{3}})+([.,]\d+)?")
_GROUPED = {",": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
            ".": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")}  # fmt: skip
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2})(?::(\d{2})(?::(\d{2})([.,]\d+)?)?)?"
    r"\s?(Z|[+-]\d{2}(?::?\d{2})?)?)?)?"
)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_PERIODS = {"season": 365.2425, "week": 7.0, "day": 1.0}


def _arrays(value: Any) -> Any:
    """Arrays where the model has base64 text."""
    if isinstance(value, dict) and set(value) == {"shape", "dtype", "base64"}:
        flat = np.frombuffer(base64.b64decode(value["base64"]), dtype=value["dtype"])
        return flat.reshape(value["shape"])
    if isinstance(value, dict):
        return {name: _arrays(part) for name, part in value.items()}
    return [_arrays(part) for part in value] if isinstance(value, list) else value


_M = _arrays(json.loads(MODEL))
COLUMNS = [column["name"] for column in _M.get("columns", [])]
_DECIMAL, _MARK = _M.get("decimal_sign", "."), _M.get("thousands_sign", ",")


def predict(X: Any, return_std: bool = False, return_interval: float | None = None) -> Any:
    """Mean of new observations and, on request, standard deviation and central interval."""
    if return_interval is not None and not 0 < return_interval < 1:
        raise ValueError(f"`return_interval` must lie between 0 and 1; got {return_interval!r}.")
    x = (_encode(X) - _M["x_centre"]) / _M["x_scale"]
    n = sum(g["precision_shares"].shape[2] * len(g["weight"]) for g in _M["groups"])
    size = max(1, N_COMPONENTS // (n * len(_M["sigma_nodes"]) * _M["n_targets"]))
    parts = [_block(x[i : i + size], return_interval) for i in range(0, max(len(x), 1), size)]
    mean, std, *bounds = (np.concatenate(part) for part in zip(*parts))
    scale, centre = _M["y_scale"], _M["y_centre"]
    found = [mean * scale + centre, std * scale, *(b * scale + centre for b in bounds)]
    if _M["one_dimensional"]:
        found = [values[:, 0] for values in found]
    out = [found[0]]
    if return_std:
        out.append(found[1])
    if return_interval is not None:
        out.append(np.stack(found[2:], axis=-1))
    return out[0] if len(out) == 1 else tuple(out)


def _block(x: np.ndarray, level: float | None) -> list[np.ndarray]:
    """Mean, std and bounds of some rows, each (m, n_targets), for standardised inputs (m, n_in)."""
    reach = _M["reach"]
    inside = np.clip(x, reach["lower"], reach["upper"])
    found = [_outputs(group, inside) for group in _M["groups"]]
    mean, variance = (np.concatenate(part) for part in zip(*found))
    # Outside the range of the training inputs, noise stays as it is and uncertainty grows.
    beyond = ((x - inside) ** 2) @ reach["slope"] ** 2
    if not np.array_equal(x, inside):
        mean[..., 0] = np.concatenate([_means(group, x) for group in _M["groups"]])[..., 0]
        variance[..., 0] += beyond
    joined = lambda name: np.concatenate([group[name] for group in _M["groups"]])
    if _M["varying"]:
        log_sigma, spread = mean[..., 1], variance[..., 1]
    else:
        log_sigma, spread = joined("log_sigma")[:, None], np.zeros_like(mean[..., 0])
    mean, variance, prior = mean[..., 0], variance[..., 0], joined("weight")[:, None, None]
    # An optimum that is uncertain at x gets less weight there.
    noise = joined("inverse_information")[:, None] * np.exp(2.0 * log_sigma)
    total = variance + (prior * noise).sum(axis=0)
    log_w = np.log(prior + 1e-300) - _M["precision_power"] * np.log(total)
    weights = np.exp(log_w - log_w.max(axis=0))
    weights /= weights.sum(axis=0)
    centre = (weights * mean).sum(axis=0)
    # Nodes of log σ, (n_nodes, n_networks, m, n_targets).
    z, share = (_M[name][:, None, None, None] for name in ("sigma_nodes", "sigma_shares"))
    sigma2 = np.exp(2.0 * (log_sigma + z * np.sqrt(spread)))
    each = variance + joined("variance")[:, None] * sigma2 + (mean - centre) ** 2
    out = [centre, np.sqrt((share * weights * each).sum(axis=(0, 1)))]
    if level is None:
        return out
    # Nodes of 1/λ: (n_nodes, n_lambda, n_networks, m, n_targets).
    inverse, parts = (
        np.moveaxis(joined(name), 2, 0)[:, :, None]
        for name in ("inverse_precisions", "precision_shares")
    )
    w = parts * (share * weights)[:, None]
    s = np.sqrt(variance + inverse * sigma2[:, None])
    m = np.broadcast_to(mean, s.shape)
    flat = lambda a: np.broadcast_to(a, s.shape).reshape(-1, *centre.shape)
    tail = 0.5 * (1.0 - level)
    return [*out, *(_quantile(flat(w), flat(m), flat(s), p) for p in (tail, 1.0 - tail))]


def _outputs(group: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the outputs of some networks, each (n_networks, m, n_targets, p)."""
    passed = _forward(group, x)
    z = passed[-1][1]
    variance = np.zeros_like(z)
    if len(group["uncertain"]):
        for o in range(z.shape[2]):
            jacobian = _jacobian(group, passed, o)[:, group["uncertain"]]
            variance[0, :, o] = ((jacobian @ group["root"].T) ** 2).sum(axis=1)
    shape = (*z.shape[:2], _M["n_targets"], -1)
    return z.reshape(shape), variance.reshape(shape)


def _means(group: Any, x: np.ndarray) -> np.ndarray:
    """The outputs of some networks, (n_networks, m, n_targets, p)."""
    z = _forward(group, x)[-1][1]
    return z.reshape(*z.shape[:2], _M["n_targets"], -1)


def _forward(group: Any, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """What enters every layer of some networks, and its weighted sums."""
    a, passed = x[None], []
    for layer in group["layers"]:
        z = a @ layer["weights"].swapaxes(1, 2) + layer["biases"][:, None]
        passed.append((a, z))
        a = _activation(group["activation"], z)[0]
    return passed


def _jacobian(group: Any, passed: Any, o: int) -> np.ndarray:
    """Derivatives of output o in all parameters of one network, (m, n_parameters)."""
    columns: list[np.ndarray] = []
    z = passed[-1][1][0]
    sensitivity = np.zeros_like(z)
    sensitivity[:, o] = 1.0
    for k in range(len(passed) - 1, -1, -1):
        a = passed[k][0][0]
        outer = sensitivity[:, :, None] * a[:, None, :]
        columns = [outer.reshape(len(a), -1), sensitivity, *columns]
        if k:
            slope = _activation(group["activation"], passed[k - 1][1][0])[1]
            sensitivity = (sensitivity @ group["layers"][k]["weights"][0]) * slope
    return np.concatenate(columns, axis=1)


def _activation(name: str, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An activation function and its slope."""
    if name == "tanh":
        a = np.tanh(z)
        return a, 1.0 - a * a
    if name == "relu":
        return np.where(z > 0, z, 0.0), (z > 0).astype(float)
    if name == "sin":
        return np.sin(z), np.cos(z)
    if name == "identity":
        return z, np.ones_like(z)
    sigmoid = 0.5 * (np.tanh(0.5 * z) + 1.0)
    if name == "softplus":
        return np.logaddexp(0.0, z), sigmoid
    return sigmoid, sigmoid * (1.0 - sigmoid)


def _quantile(weights: Any, means: Any, stds: Any, p: float) -> np.ndarray:
    """Quantile of normal mixtures (n, ...), by Newton's method inside a shrinking bracket."""
    stds = stds + 1e-300
    centre = (weights * means).sum(axis=0)
    spread = np.sqrt((weights * (stds**2 + (means - centre) ** 2)).sum(axis=0))
    reach = spread * max((1.0 - p) / p, p / (1.0 - p)) ** 0.5  # Cantelli's inequality
    low, high, x = centre - reach, centre + reach, centre
    for _ in range(200):
        z = (x - means) / stds
        excess = (weights * _normal_cdf(z)).sum(axis=0) - p
        density = (weights * np.exp(-0.5 * z * z) / stds).sum(axis=0) / np.sqrt(2 * np.pi)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        new = x - excess / np.maximum(density, 1e-300)
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        done = np.abs(new - x) <= 1e-12 * (spread + np.abs(x))
        x = new
        if done.all():
            break
    return x


def _normal_cdf(z: np.ndarray) -> np.ndarray:
    x = np.abs(z) * np.sqrt(0.5)
    near, far = np.minimum(x, 1.0), np.clip(x, 1.0, 26.0)
    inside = near * np.polyval(_T, near**2) / np.polyval(_U, near**2)
    tail = np.where(
        x < 1.0, 1.0 - inside, np.exp(-(far**2)) * np.polyval(_P, far) / np.polyval(_Q, far)
    )
    return np.where(z > 0, 1.0 - 0.5 * tail, 0.5 * tail)


def _encode(X: Any) -> np.ndarray:
    """Inputs of the network, (m, n_inputs)."""
    if hasattr(X, "keys"):  # a dict or a DataFrame
        missing = [name for name in COLUMNS if name not in X]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}; the model needs {COLUMNS}.")
        columns = [_cells(X[name]) for name in COLUMNS]
    else:
        X = _cells(X)
        if X.ndim != 2 or X.shape[1] != len(COLUMNS):
            raise ValueError(f"X must have {len(COLUMNS)} columns, {COLUMNS}; got shape {X.shape}.")
        columns = list(X.T)
    return np.column_stack(list(map(_column, _M["columns"], columns)))


def _cells(values: Any) -> np.ndarray:
    """An array of numbers or dates, otherwise of objects: NumPy would read text its own way."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(values, dtype=object)
    return found if found.dtype.kind in "biufM" else np.asarray(values, dtype=object)


def _column(described: Any, cells: np.ndarray) -> np.ndarray:
    """A column as inputs of the network; cells of inputs without effect may be unknown."""
    kind, name = described["kind"], described["name"]
    missing = np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind not in "biuf":
        missing = np.array([_is_missing(cell, kind) for cell in cells], dtype=bool)
    if kind == "empty" or (kind == "category" and "" in described["codes"]):
        missing &= False
    values = np.full((len(cells), described["width"] - described["indicator"]), np.nan)
    try:
        values[~missing] = _values(described, kind, cells[~missing])
    except (ValueError, TypeError) as error:
        raise ValueError(f"Column {name!r} ({kind}) has a wrong cell: {error}") from None
    if _is_new(described, values, missing):
        warnings.warn(
            f"Column {name!r} was the same in all rows of the fit and has a new value here; its "
            "effect is not known, and the interval does not include it.",
            stacklevel=4,
        )
    if described["indicator"]:  # of missing cells
        values = np.column_stack([values, missing])
    unknown = np.isnan(values)
    wrong = unknown[:, np.asarray(described["used"], dtype=bool)].any(axis=1)
    if (wrong & missing).any():
        raise ValueError(f"Column {name!r} has missing cells; this file cannot fill them.")
    if wrong.any():
        row, codes = int(np.argmax(wrong)), list(described.get("codes", ()))[:8]
        place = f"{cells[row]!r} in row {row + 1}" + (f"; known: {codes}" if codes else "")
        raise ValueError(f"Column {name!r} ({kind}) has a cell that is not known: {place}")
    return np.where(unknown, 0.0, values)


def _is_new(described: Any, values: np.ndarray, missing: np.ndarray) -> bool:
    """Whether a cell differs from the only value that its column had in the fit."""
    if described["kind"] == "category":
        return len(described["codes"]) == 1 and bool(
            (np.isnan(values).any(axis=1) & ~missing).any()
        )
    only, known = described["only"], values[~missing, 0]
    return only is not None and not np.allclose(known, only, rtol=1e-9, atol=0.0)


def _is_missing(cell: Any, kind: str) -> bool:
    if cell is None:
        return True
    word = str(cell).strip().lower()
    return word in _MISSING and not (word == "none" and kind == "category")


def _values(described: Any, kind: str, cells: np.ndarray) -> np.ndarray:
    """Encoded cells, none of them missing; NaN for categories that the fit did not have."""
    if kind == "empty":
        return np.zeros((len(cells), 1))
    if kind == "category":
        codes = described["codes"]
        unknown = np.full(described["width"] - described["indicator"], np.nan)
        return np.array([codes.get(_label(c), unknown) for c in cells]).reshape(-1, len(unknown))
    if kind in ("number", "percent", "boolean"):
        plain = cells.dtype.kind in "biuf"
        money = described["format"] or next(filter(None, map(_currency, cells)), "")
        found = cells.astype(float) if plain else np.array([_number(c, kind, money) for c in cells])
        if kind == "boolean" and not np.isin(found, [0.0, 1.0]).all():
            raise ValueError("it is neither true nor false")
        hats = np.eye(len(described["knots"]))[1:-1]
        return np.column_stack([found, *(np.interp(found, described["knots"], h) for h in hats)])
    if kind == "date":
        if cells.dtype.kind != "M":
            cells = np.array([_moment(c, described["format"]) for c in cells], "datetime64[us]")
        days = cells.astype("datetime64[us]").astype(np.int64) / 86_400e6
    else:  # a time of day
        days = np.array([_hours(cell) for cell in cells]) / 24.0
    out: list[np.ndarray] = []
    for part in described["parts"]:
        angle = 2 * np.pi * days / _PERIODS.get(part, 1.0)
        out += [days] if part == "elapsed" else [np.sin(angle), np.cos(angle)]
    return np.column_stack(out)


def _label(cell: Any) -> str:
    """The name of a category: a whole number has no decimals, and an empty cell no name."""
    text = "" if _is_missing(cell, "category") else str(cell).strip()
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", text)


def _number(cell: Any, kind: str, currency: str = "") -> float:
    if not isinstance(cell, str):
        return float(cell)
    text = cell.strip()
    if kind == "boolean" and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.endswith("%") != (kind == "percent"):
        raise ValueError(f"{text!r} {'has no' if kind == 'percent' else 'has a'} percent sign")
    text = text.rstrip("% ")
    if amount := _AMOUNT.fullmatch(text):
        if currency not in ("", _currency(text)):
            raise ValueError(f"{text!r} is in {_currency(text)}, but the column is in {currency}")
        text = amount[4] or amount[1] + amount[3]
    if _SPACED.fullmatch(text):
        text = re.sub(_SPACES, "", text)
    mark = "." if _DECIMAL == "," else ","
    if _GROUPED[mark].fullmatch(text) and (_MARK or text.count(mark) > 1 or _DECIMAL in text):
        text = text.replace(mark, "")
    if _DECIMAL == "," and "." in text:
        raise ValueError(f"{text!r} has a point, but the numbers of the fit have decimal commas")
    found = float(text.replace(",", ".", 1) if _DECIMAL == "," else text)
    if not np.isfinite(found) or "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return found


def _currency(cell: Any) -> str:
    found = _AMOUNT.fullmatch(str(cell).strip())
    name = (found[2] or found[5]) if found else ""
    return _SAME.get(name, name)


def _moment(cell: Any, form: str) -> Any:
    """A date without time zone: UTC if it had one."""
    if isinstance(cell, str):
        text = cell.strip()
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            found = _ISO.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not a date like those of the fit")
        year, month, day, hour, minute, second, rest, zone = found.groups()
        moment = datetime.datetime(int(year), int(month), int(day or 1), int(hour or 0))
        seconds = int(second or 0) + (float("0." + rest[1:]) if rest else 0.0)
        moment += datetime.timedelta(minutes=int(minute or 0), seconds=seconds)
        if zone and zone != "Z":
            hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
            ahead = datetime.timedelta(hours=hours, minutes=minutes)
            moment += -ahead if zone[0] == "+" else ahead
        return moment
    if getattr(cell, "tzinfo", None) is not None:
        return (cell - cell.utcoffset()).replace(tzinfo=None)
    return cell


def _hours(cell: Any) -> float:
    if isinstance(cell, (int, float)):
        return float(cell)
    found = _CLOCK.fullmatch(str(cell).strip())
    if not found:
        raise ValueError(f"{str(cell)!r} is not a time of day such as 14:30")
    hours, minutes, seconds = found.groups()
    return int(hours) + int(minutes) / 60 + float(seconds or 0) / 3600
