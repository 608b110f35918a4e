"""`export` of a fitted estimator: the file formats, and the mixin of `SparseBNNRegressor`."""

from __future__ import annotations

import base64
import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sbnn._core.extras import require
from sbnn._core.files.atomic import write_bytes
from sbnn.exports.contents import contents
from sbnn.tables.column_types import ColumnType
from sbnn.tables.numerals import PLAIN, Signs

FORMATS = {".py": "a Python file", ".onnx": "ONNX", ".json": "JSON"}
PLACE = 'MODEL = "{}"  # replaced by the model'


class Export:
    """Mixin of `SparseBNNRegressor`: models for other programs."""

    encoder_: Any
    _posterior: Any
    _scaling: Any
    _flat: bool

    def export(self, path: str | os.PathLike, overwrite: bool = False) -> None:
        """Write the model for other programs; their mean, std and interval equal `predict`.

        Missing cells and new categories of inputs that the model uses need the training rows and
        are not supported: the Python file raises an error, ONNX returns NaN.

        Parameters
        ----------
        path : str or path
            Ends in .py (a module that needs NumPy only, with a function `predict`), .onnx (needs
            the extra "onnx"; the outputs are mean, std, lower and upper) or .json (the networks,
            their uncertainty and the noise as numbers).
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        ValueError
            If the suffix is unknown or the model cannot be exported.
        FileExistsError
            If the file exists and is not to be replaced.

        Examples
        --------
        >>> import numpy as np, pathlib, runpy, tempfile
        >>> from sbnn import SparseBNNRegressor
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> model = SparseBNNRegressor((2,), n_starts=2, random_state=0).fit(X, X[:, 0] ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "model.py"
        ...     model.export(path)
        ...     exported = runpy.run_path(str(path))
        >>> bool(np.allclose(exported["predict"](X), model.predict(X)))
        True
        """
        self._export(Path(path), overwrite)

    def _export(
        self,
        path: Path,
        overwrite: bool,
        types: Mapping[str, ColumnType] | None = None,
        signs: Signs = PLAIN,
    ) -> None:
        """Write the model; `types` and `signs` say how the file of the fit was written."""
        check_is_fitted(self)
        suffix = check_suffix(path)
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists; use overwrite=True to replace it.")
        names = list(getattr(self, "feature_names_in_", range(len(self.encoder_.columns))))
        found = contents(
            self._posterior, self._scaling, self.encoder_, names, self._flat, types, signs
        )
        write_bytes(path, encoded(found, suffix), overwrite)


def check_suffix(path: Path) -> str:
    """The suffix of an export; a ValueError if it is not known, or its packages are missing."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(f"{ending} ({name})" for ending, name in FORMATS.items())
        raise ValueError(f"The name of an export must end in one of {known}; got {str(path)!r}.")
    if suffix == ".onnx":
        require("onnx", "An ONNX file", "onnx")
    return suffix


def encoded(model: dict[str, Any], suffix: str) -> bytes:
    """The contents of a file."""
    if suffix == ".json":
        return json.dumps(_plain(model, _as_list), ensure_ascii=False, indent=1).encode()
    if suffix == ".onnx":
        from sbnn.exports.graph import onnx_model

        return onnx_model(model).SerializeToString()
    from sbnn.exports import portable

    source = inspect.getsource(portable)
    assert PLACE in source
    text = json.dumps(_plain(model, _as_base64), ensure_ascii=True)
    return source.replace(PLACE, f"MODEL = {text!r}").encode()


def _plain(value: Any, convert: Any) -> Any:
    """The model with arrays converted."""
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, dict):
        return {name: _plain(part, convert) for name, part in value.items()}
    return [_plain(part, convert) for part in value] if isinstance(value, list) else value


def _as_list(values: np.ndarray) -> Any:
    return values.tolist()


def _as_base64(values: np.ndarray) -> dict[str, Any]:
    values = np.ascontiguousarray(values, dtype="<i8" if values.dtype.kind == "i" else "<f8")
    text = base64.b64encode(values.tobytes()).decode()
    return {"shape": list(values.shape), "dtype": values.dtype.str, "base64": text}
