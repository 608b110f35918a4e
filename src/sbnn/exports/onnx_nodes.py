"""Nodes of an ONNX graph under construction, and functions that ONNX lacks in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnn.exports import portable


class Nodes:
    """Collects nodes and constants; every value has a name that is made up here."""

    def __init__(self, prefix: str = "sbnn_value_") -> None:
        import onnx  # of an extra

        self.onnx = onnx
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[Any, ...], str] = {}

    def info(self, name: str, kind: str, shape: list[Any] | None) -> Any:
        """Description of an input or output; `kind` is one of TensorProto's names."""
        type_ = getattr(self.onnx.TensorProto, kind)
        return self.onnx.helper.make_tensor_value_info(name, type_, shape)

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """The graph of all nodes."""
        return self.onnx.helper.make_graph(self.nodes, name, inputs, outputs, self.constants)

    def inner(self, name: str) -> Nodes:
        """Nodes of a subgraph."""
        return Nodes(f"{self.prefix}_{name}_")

    def named(self, *names: str) -> list[str]:
        """Names of the inputs of a subgraph."""
        return [self.prefix + name for name in names]

    def add(self, operation: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node; returns the name of its value."""
        name = name or f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def loop(self, body: Any, inputs: list[str]) -> list[str]:
        """Repeat a subgraph; returns the names of the values carried from step to step."""
        names = [f"{self.prefix}{len(self.nodes)}_{k}" for k in range(len(inputs) - 2)]
        self.nodes.append(self.onnx.helper.make_node("Loop", inputs, names, body=body))
        return names

    def constant(self, values: Any) -> str:
        """A constant in double precision."""
        return self._constant(np.asarray(values, dtype=np.float64))

    def integers(self, values: Any) -> str:
        """A constant of whole numbers."""
        return self._constant(np.asarray(values, dtype=np.int64))

    def truth(self, values: Any) -> str:
        """A constant that is true or false."""
        return self._constant(np.asarray(values, dtype=bool))

    def _constant(self, values: np.ndarray) -> str:
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._known:
            name = f"{self.prefix}c{len(self.constants)}"
            self.constants.append(
                self.onnx.numpy_helper.from_array(
                    np.ascontiguousarray(values).reshape(values.shape), name
                )
            )
            self._known[key] = name
        return self._known[key]

    def constant_like(self, cell: str, value: float) -> str:
        """A constant of the shape of `cell`."""
        filled = self.onnx.numpy_helper.from_array(np.array([value]))
        return self.add("ConstantOfShape", self.add("Shape", cell), value=filled)

    def total(self, values: str, axes: list[int], keep: bool = True) -> str:
        """Sum over some axes."""
        return self.add("ReduceSum", values, self.integers(axes), keepdims=int(keep))


def activation(nodes: Nodes, name: str, z: str) -> tuple[str, str]:
    """An activation function and its slope.

    Parameters
    ----------
    nodes : Nodes
    name : str
    z : str

    Returns
    -------
    value, slope : str
    """
    one, half = nodes.constant(1.0), nodes.constant(0.5)
    if name == "tanh":
        a = nodes.add("Tanh", z)
        return a, nodes.add("Sub", one, nodes.add("Mul", a, a))
    if name == "relu":
        positive = nodes.add("Greater", z, nodes.constant(0.0))
        return nodes.add("Where", positive, z, nodes.constant(0.0)), nodes.add(
            "Where", positive, one, nodes.constant(0.0)
        )
    if name == "sin":
        ahead = nodes.add("Add", z, nodes.constant(np.pi / 2))
        return nodes.add("Sin", z), nodes.add("Sin", ahead)
    if name == "identity":
        return z, nodes.add("Add", nodes.add("Mul", z, nodes.constant(0.0)), one)
    tanh = nodes.add("Tanh", nodes.add("Mul", z, half))
    sigmoid = nodes.add("Mul", nodes.add("Add", tanh, one), half)
    if name == "softplus":  # log(1 + e^−|z|) + max(z, 0)
        size = nodes.add("Abs", z)
        small = nodes.add("Exp", nodes.add("Neg", size))
        positive = nodes.add("Mul", nodes.add("Add", z, size), half)
        return nodes.add("Add", nodes.add("Log", nodes.add("Add", small, one)), positive), sigmoid
    return sigmoid, nodes.add("Mul", sigmoid, nodes.add("Sub", one, sigmoid))


def normal_cdf(nodes: Nodes, z: str) -> str:
    """P(Z ≤ z) of a standard normal Z, with the approximations of `portable`.

    ONNX has erf, but runtimes offer it in single precision only.
    """
    one, half = nodes.constant(1.0), nodes.constant(0.5)
    x = nodes.add("Mul", nodes.add("Abs", z), nodes.constant(np.sqrt(0.5)))
    near = nodes.add("Min", x, one)
    far = nodes.add("Min", nodes.add("Max", x, one), nodes.constant(26.0))
    square = nodes.add("Mul", near, near)
    ratio = nodes.add(
        "Div", _polynomial(nodes, portable._T, square), _polynomial(nodes, portable._U, square)
    )
    inside = nodes.add("Sub", one, nodes.add("Mul", near, ratio))
    ratio = nodes.add(
        "Div", _polynomial(nodes, portable._P, far), _polynomial(nodes, portable._Q, far)
    )
    outside = nodes.add(
        "Mul", nodes.add("Exp", nodes.add("Neg", nodes.add("Mul", far, far))), ratio
    )
    tail = nodes.add("Where", nodes.add("Less", x, one), inside, outside)
    tail = nodes.add("Mul", tail, half)
    positive = nodes.add("Greater", z, nodes.constant(0.0))
    return nodes.add("Where", positive, nodes.add("Sub", one, tail), tail)


def _polynomial(nodes: Nodes, coefficients: tuple[float, ...], x: str) -> str:
    """Horner's rule, highest power first."""
    out = nodes.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        out = nodes.add("Add", nodes.add("Mul", out, x), nodes.constant(coefficient))
    return out
