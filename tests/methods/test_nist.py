"""Nonlinear regression against NIST's certified values (StRD); more sets in benchmarks/nist.py."""

from __future__ import annotations

import jax.numpy as jnp
import nist
import numpy as np
import pytest

import sbnn

# Misra1a: volume against pressure, y = b1 (1 − exp(−b2 x)), lower level of difficulty.
Y = [
    10.07,
    14.73,
    17.94,
    23.93,
    29.61,
    35.18,
    40.02,
    44.82,
    50.76,
    55.05,
    61.01,
    66.40,
    75.47,
    81.78,
]
X = [
    77.6,
    114.9,
    141.1,
    190.8,
    239.9,
    289.0,
    332.8,
    378.4,
    434.8,
    477.3,
    536.8,
    593.1,
    689.1,
    760.0,
]
PARAMETERS = [2.3894212918e2, 5.5015643181e-4]
STANDARD_DEVIATIONS = [2.7070075241, 7.2668688436e-6]
RESIDUAL = 1.0187876330e-1


@pytest.mark.parametrize("start", [[500.0, 0.0001], [250.0, 0.0005]])
def test_modes_and_standard_deviations_match_the_certified_values(start):
    theta, std, sigma = nist.fit(nist.MODELS["Misra1a"], np.array(X), np.array(Y), start)
    np.testing.assert_allclose(theta, PARAMETERS, rtol=1e-9)
    np.testing.assert_allclose(std, STANDARD_DEVIATIONS, rtol=1e-8)
    np.testing.assert_allclose(sigma, RESIDUAL, rtol=1e-9)


def test_nist_file_format_is_read(tmp_path):
    rows = "\n".join(f"      {y}E0      {x}E0" for y, x in zip(Y, X))
    path = tmp_path / "Misra1a.dat"
    path.write_text(
        "  b1 =   500         250           2.3894212918E+02  2.7070075241E+00\n"
        "  b2 =     0.0001      0.0005      5.5015643181E-04  7.2668688436E-06\n"
        "Residual Standard Deviation:                1.0187876330E-01\n"
        f"Data:          1 Response Variable\n\nData:   y               x\n{rows}\n"
    )
    certified = nist.read(path)
    np.testing.assert_array_equal(certified.x, X)
    np.testing.assert_array_equal(certified.y, Y)
    np.testing.assert_array_equal(certified.starts, [[500, 1e-4], [250, 5e-4]])
    np.testing.assert_array_equal(certified.parameters, PARAMETERS)


def wave(theta):
    t = jnp.linspace(0.0, 3.0, 12)
    return jnp.stack([theta[0] * jnp.sin(theta[1] * t), theta[2] * t], axis=1)


def test_start_of_the_wrong_length_raises():
    problem = sbnn.Problem.from_model(
        wave, np.eye(12, 2), names=["a", "b", "c"], ard=["a", "b", "c"]
    )
    with pytest.raises(ValueError, match="`start` must hold one finite number per parameter, 5"):
        sbnn.laplace(problem, start=[1.0, 2.0])
