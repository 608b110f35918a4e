"""Files of fitted estimators: checksums, and arrays that no fit produces."""

from __future__ import annotations

import numpy as np
import pytest

import sbnn
from sbnn.regressor import files


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(30, 2))
    options = {"hidden_layer_sizes": (2,), "n_starts": 2, "random_state": 0, "n_jobs": 1}
    return sbnn.SparseBNNRegressor(**options).fit(x, np.tanh(2 * x[:, 0]))


def test_any_changed_byte_is_detected(model, tmp_path):
    path = tmp_path / "model.nc"
    model.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=40):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checksum|not a readable"):
            sbnn.load(path)


def bad_index(arrays):
    arrays["posterior_active_0"][0] = -1


def large_index(arrays):
    arrays["posterior_active_0"][-1] = 10**6


def twice(arrays):
    arrays["posterior_active_0"][1] = arrays["posterior_active_0"][0]


def not_a_number(arrays):
    arrays["posterior_phi_0"][0] = np.nan


def no_scale(arrays):
    arrays["scaling_y_scale"][0] = 0.0


@pytest.mark.parametrize("change", [bad_index, large_index, twice, not_a_number, no_scale])
def test_invalid_arrays_in_a_file_are_errors(model, tmp_path, monkeypatch, change):
    real = files.parts

    def changed(estimator):
        arrays, metadata = real(estimator)
        arrays = {name: np.array(values) for name, values in arrays.items()}
        change(arrays)
        return arrays, metadata

    monkeypatch.setattr(files, "parts", changed)
    model.save(tmp_path / "model.nc")
    with pytest.raises(ValueError, match="is incomplete or was altered"):
        sbnn.load(tmp_path / "model.nc")
