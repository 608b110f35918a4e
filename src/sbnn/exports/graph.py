"""The predictions of `portable` as an ONNX graph in double precision.

Inputs: X with one column per input or, if some columns hold text or dates, one input per column, of
shape (n, 1): numbers, text, dates in days since 1970, times in hours. `level` is the probability of
the interval. Outputs: mean, std, lower and upper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnn.exports import portable
from sbnn.exports.onnx_nodes import Nodes, activation, normal_cdf

OPSET, OPSET_ML, IR_VERSION = 17, 3, 8
BISECTIONS = 45  # 2⁻⁴⁵ of some standard deviations
PLAIN = ("number", "percent", "boolean", "empty")
TAKEN = ("level", "mean", "std", "lower", "upper")
DAYS_PER_HOUR = 1.0 / 24.0


def onnx_model(model: dict[str, Any]) -> Any:
    """Build the graph.

    Parameters
    ----------
    model : dict
        From `contents`.

    Returns
    -------
    onnx.ModelProto
    """
    nodes = Nodes()
    encoded, inputs = _encoded(nodes, model["columns"])
    # Cells of inputs without effect may be missing.
    used = nodes.truth(np.concatenate([column["used"] for column in model["columns"]]))
    encoded = nodes.add("Where", used, encoded, nodes.constant(model["x_centre"]))
    centred = nodes.add("Sub", encoded, nodes.constant(model["x_centre"]))
    x = nodes.add("Div", centred, nodes.constant(model["x_scale"]))
    found = _predictive(nodes, model, x)
    outputs = []
    scale, centre = (nodes.constant(model[name]) for name in ("y_scale", "y_centre"))
    shape: list[Any] = ["n"] if model["one_dimensional"] else ["n", model["n_targets"]]
    for name, values in found.items():
        out = nodes.add("Mul", values, scale)
        out = out if name == "std" else nodes.add("Add", out, centre)
        if model["one_dimensional"]:
            out = nodes.add("Squeeze", out, nodes.integers([1]))
        nodes.add("Identity", out, name=name)
        outputs.append(nodes.info(name, "DOUBLE", shape))
    graph = nodes.graph("sbnn", [*inputs, nodes.info("level", "DOUBLE", [])], outputs)
    onnx = nodes.onnx
    helper = onnx.helper
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    out = helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sbnn",
        producer_version=model["sbnn_version"],
    )  # fmt: skip
    onnx.checker.check_model(out)
    return out


def _encoded(nodes: Nodes, columns: list[dict[str, Any]]) -> tuple[str, list[Any]]:
    """Inputs of the networks, (n, n_encoded), and the inputs of the graph."""
    parts = []
    if all(column["kind"] in PLAIN for column in columns):
        info = nodes.info("X", "DOUBLE", ["n", len(columns)])
        for k, column in enumerate(columns):
            cell = nodes.add("Gather", "X", nodes.integers([k]), axis=1)
            parts += _numbers(nodes, column, cell)
        return nodes.add("Concat", *parts, axis=1), [info]
    infos = []
    for column in columns:
        name = input_name(column["name"])
        text = column["kind"] == "category"
        infos.append(nodes.info(name, "STRING" if text else "DOUBLE", ["n", 1]))
        parts += _levels(nodes, column, name) if text else _numbers(nodes, column, name)
    return nodes.add("Concat", *parts, axis=1), infos


def input_name(column: str) -> str:
    """The name of the input for a column: its own, unless an output or `level` has it."""
    return f"{column}_input" if column in TAKEN else column


def _levels(nodes: Nodes, column: dict[str, Any], cell: str) -> list[str]:
    """Rows of a table of codes; other categories get a row of NaN."""
    names = list(column["codes"])
    codes = np.array([column["codes"][name] for name in names]).reshape(len(names), -1)
    codes = np.vstack([codes, np.full(codes.shape[1], np.nan)])
    place = nodes.add(
        "LabelEncoder", cell, domain="ai.onnx.ml", keys_strings=names,
        values_int64s=list(range(len(names))), default_int64=len(names),
    )  # fmt: skip
    row = nodes.add("Squeeze", place, nodes.integers([1]))
    return [
        nodes.add("Gather", nodes.constant(codes), row, axis=0),
        *_indicator(nodes, column, place),
    ]


def _numbers(nodes: Nodes, column: dict[str, Any], cell: str) -> list[str]:
    """A number; a date in days since 1970 and a time in hours as what they are encoded to."""
    parts = []
    if column["kind"] == "empty":
        parts.append(nodes.constant_like(cell, 0.0))
    elif column["parts"]:
        days = cell
        if column["kind"] == "time":
            days = nodes.add("Mul", cell, nodes.constant(DAYS_PER_HOUR))
        for part in column["parts"]:
            if part == "elapsed":
                parts.append(days)
                continue
            per_day = nodes.constant(2 * np.pi / portable._PERIODS[part])
            angle = nodes.add("Mul", days, per_day)
            ahead = nodes.add("Add", angle, nodes.constant(np.pi / 2))
            parts += [nodes.add("Sin", angle), nodes.add("Sin", ahead)]
    else:
        parts += [cell, *_hats(nodes, column["knots"], cell)]
    return [*parts, *_indicator(nodes, column, cell)]


def _hats(nodes: Nodes, knots: list[float], cell: str) -> list[str]:
    """max(0, min((x − l)/(k − l), (r − x)/(r − k))) for each knot k between its neighbours."""
    out = []
    for low, knot, high in zip(knots, knots[1:], knots[2:]):
        rise = nodes.add("Sub", cell, nodes.constant(low))
        rise = nodes.add("Div", rise, nodes.constant(knot - low))
        fall = nodes.add("Sub", nodes.constant(high), cell)
        fall = nodes.add("Div", fall, nodes.constant(high - knot))
        out.append(nodes.add("Max", nodes.add("Min", rise, fall), nodes.constant(0.0)))
    return out


def _indicator(nodes: Nodes, column: dict[str, Any], cell: str) -> list[str]:
    """No cell is missing."""
    return [nodes.constant_like(cell, 0.0)] if column["indicator"] else []


def _outputs(
    nodes: Nodes, group: dict[str, Any], x: str, variances_too: bool = True
) -> tuple[str, str]:
    """Mean and variance of the outputs of some networks, each (D, n, n_out)."""
    a, layers, passed = nodes.add("Unsqueeze", x, nodes.integers([0])), group["layers"], []
    z = a
    for k, layer in enumerate(layers):
        weights = nodes.constant(layer["weights"].swapaxes(1, 2))
        z = nodes.add("MatMul", a, weights)
        z = nodes.add("Add", z, nodes.constant(layer["biases"][:, None]))
        slope = ""
        passed.append(a)
        if k < len(layers) - 1:
            a, slope = activation(nodes, group["activation"], z)
            passed.append(slope)
    n_out = layers[-1]["biases"].shape[1]
    if not variances_too:
        return z, ""
    if not len(group["uncertain"]):
        return z, nodes.add("Mul", z, nodes.constant(0.0))
    variances = [_variance(nodes, group, passed, z, o) for o in range(n_out)]
    return z, nodes.add("Concat", *variances, axis=2)


def _variance(nodes: Nodes, group: dict[str, Any], passed: list[str], z: str, o: int) -> str:
    """Variance |M Jᵀ|² of output o of one network, (1, n, 1)."""
    layers = group["layers"]
    chosen = np.zeros(layers[-1]["biases"].shape[1])
    chosen[o] = 1.0
    zero = nodes.add("Mul", z, nodes.constant(0.0))
    sensitivity = nodes.add("Add", zero, nodes.constant(chosen))  # (1, n, n_out)
    columns: list[str] = []
    for k in range(len(layers) - 1, -1, -1):
        n_parameters = layers[k]["weights"][0].size
        left = nodes.add("Unsqueeze", sensitivity, nodes.integers([3]))
        right = nodes.add("Unsqueeze", passed[2 * k], nodes.integers([2]))
        outer = nodes.add("Mul", left, right)
        flat = nodes.add("Reshape", outer, nodes.integers([1, -1, n_parameters]))
        columns = [flat, sensitivity, *columns]
        if k:
            back = nodes.add("MatMul", sensitivity, nodes.constant(layers[k]["weights"]))
            sensitivity = nodes.add("Mul", back, passed[2 * k - 1])
    jacobian = nodes.add("Concat", *columns, axis=2)
    jacobian = nodes.add("Gather", jacobian, nodes.integers(group["uncertain"]), axis=2)
    half = nodes.add("MatMul", jacobian, nodes.constant(group["root"].T))
    return nodes.total(nodes.add("Mul", half, half), [2])


def _predictive(nodes: Nodes, model: dict[str, Any], x: str) -> dict[str, str]:
    """Mean, std, lower and upper for standardised targets, each (n, n_targets)."""
    reach = model["reach"]
    inside = nodes.add("Min", nodes.add("Max", x, nodes.constant(reach["lower"])),
                       nodes.constant(reach["upper"]))  # fmt: skip
    both = [_outputs(nodes, group, inside) for group in model["groups"]]
    mean, variance = (nodes.add("Concat", *part, axis=0) for part in zip(*both))
    beyond = [_outputs(nodes, group, x, False)[0] for group in model["groups"]]
    centre_beyond = nodes.add("Concat", *beyond, axis=0)
    joined = lambda name: np.concatenate([group[name] for group in model["groups"]])
    if model["varying"]:
        own, scale = (np.arange(start, 2 * model["n_targets"], 2) for start in (0, 1))
        log_sigma, spread = (
            nodes.add("Gather", v, nodes.integers(scale), axis=2) for v in (mean, variance)
        )
        mean, variance = (
            nodes.add("Gather", v, nodes.integers(own), axis=2) for v in (centre_beyond, variance)
        )
    else:
        log_sigma, spread = nodes.constant(joined("log_sigma")[:, None]), nodes.constant(0.0)
        mean = centre_beyond
    outside = nodes.add("Sub", x, inside)
    squares = nodes.add("Mul", outside, outside)
    growth = nodes.add("MatMul", squares, nodes.constant(reach["slope"] ** 2))
    variance = nodes.add("Add", variance, growth)
    prior = joined("weight")[:, None, None]
    doubled = nodes.add("Exp", nodes.add("Mul", log_sigma, nodes.constant(2.0)))
    noise = nodes.add(
        "Mul", doubled, nodes.constant(prior * joined("inverse_information")[:, None])
    )
    total = nodes.add("Add", variance, nodes.total(noise, [0]))
    power = nodes.constant(-model["precision_power"])
    log_w = nodes.add("Mul", nodes.add("Log", total), power)
    log_w = nodes.add("Add", log_w, nodes.constant(np.log(prior + 1e-300)))
    largest = nodes.add("ReduceMax", log_w, axes=[0], keepdims=1)
    raw = nodes.add("Exp", nodes.add("Sub", log_w, largest))
    weights = nodes.add("Div", raw, nodes.total(raw, [0]))
    centre = nodes.total(nodes.add("Mul", weights, mean), [0])  # (1, n, n_targets)
    # Nodes of log σ in front: (n_nodes, D, n, n_targets).
    z, share = (model[name][:, None, None, None] for name in ("sigma_nodes", "sigma_shares"))
    apart = nodes.add("Mul", nodes.add("Sqrt", spread), nodes.constant(z))
    at = nodes.add("Mul", nodes.add("Add", apart, log_sigma), nodes.constant(2.0))
    sigma2 = nodes.add("Exp", at)
    off = nodes.add("Sub", mean, centre)
    each = nodes.add("Mul", sigma2, nodes.constant(joined("variance")[:, None]))
    each = nodes.add("Add", nodes.add("Add", each, variance), nodes.add("Mul", off, off))
    weights = nodes.add("Mul", weights, nodes.constant(share))
    std = nodes.add("Sqrt", nodes.total(nodes.add("Mul", weights, each), [0, 1], keep=False))
    # Nodes of 1/λ in front: (n_lambda, n_nodes, D, n, n_targets).
    inverse, parts = (
        np.moveaxis(joined(name), 2, 0)[:, None, :, None]
        for name in ("inverse_precisions", "precision_shares")
    )
    stds = nodes.add("Add", nodes.add("Mul", sigma2, nodes.constant(inverse)), variance)
    mixture = (
        nodes.add("Mul", weights, nodes.constant(parts)), mean, nodes.add("Sqrt", stds),
    )  # fmt: skip
    flat = nodes.add("Squeeze", centre, nodes.integers([0]))
    return {"mean": flat, "std": std, **_interval(nodes, mixture, flat)}


def _interval(nodes: Nodes, mixture: tuple[str, str, str], centre: str) -> dict[str, str]:
    """Quantiles of normal mixtures, by bisection between bounds from Cantelli's inequality."""
    weights, means, stds = mixture
    off = nodes.add("Sub", means, centre)
    each = nodes.add("Add", nodes.add("Mul", stds, stds), nodes.add("Mul", off, off))
    spread = nodes.add("Sqrt", nodes.total(nodes.add("Mul", weights, each), [0, 1, 2], keep=False))
    one, half = nodes.constant(1.0), nodes.constant(0.5)
    lower = nodes.add("Mul", nodes.add("Sub", one, "level"), half)
    upper = nodes.add("Sub", one, lower)
    reach = nodes.add("Mul", spread, nodes.add("Sqrt", nodes.add("Div", upper, lower)))
    low, high = nodes.add("Sub", centre, reach), nodes.add("Add", centre, reach)
    out = {}
    for name, p in (("lower", lower), ("upper", upper)):
        body = _halving(nodes.inner(name), mixture, p, half)
        start = [nodes.integers(BISECTIONS), nodes.truth(True), low, high]
        below, above = nodes.loop(body, start)
        out[name] = nodes.add("Mul", nodes.add("Add", below, above), half)
    return out


def _halving(nodes: Nodes, mixture: tuple[str, str, str], p: str, half: str) -> Any:
    """One step of bisection, the body of a loop: (step, go on, low, high) → (go on, low, high)."""
    weights, means, stds = mixture
    step, go, low, high = nodes.named("step", "go", "low", "high")
    x = nodes.add("Mul", nodes.add("Add", low, high), half)
    z = nodes.add("Div", nodes.add("Sub", x, means), stds)
    probability = nodes.add("Mul", weights, normal_cdf(nodes, z))
    below = nodes.add("Less", nodes.total(probability, [0, 1, 2], keep=False), p)
    outs = [
        nodes.add("Identity", go),
        nodes.add("Where", below, x, low),
        nodes.add("Where", below, high, x),
    ]
    inputs = [nodes.info(step, "INT64", []), nodes.info(go, "BOOL", [])]
    inputs += [nodes.info(name, "DOUBLE", None) for name in (low, high)]
    outputs = [nodes.info(outs[0], "BOOL", [])]
    outputs += [nodes.info(name, "DOUBLE", None) for name in outs[1:]]
    return nodes.graph("halving", inputs, outputs)
