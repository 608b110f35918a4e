"""Laplace from far starts: NIST's certified values, or one clear error; never a wrong number."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import nist
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import sbnn
from sbnn.priors import Uniform

# StRD sets of the higher level of difficulty: x, y, start 1 and certified parameters.
FAR = {
    "BoxBOD": (
        [1, 2, 3, 5, 7, 10],
        [109, 149, 149, 191, 213, 224],
        [1, 1],
        [2.1380940889e2, 5.4723748542e-1],
    ),
    "Rat42": (
        [9, 14, 21, 28, 42, 57, 63, 70, 79],
        [8.93, 10.80, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08],
        [100, 1, 0.1],
        [7.2462237576e1, 2.6180768402, 6.7359200066e-2],
    ),
    "Rat43": (
        range(1, 16),
        [16.08, 33.83, 65.80, 97.20, 191.55, 326.20, 386.87, 520.53, 590.03, 651.92, 724.93,
         699.56, 689.96, 637.56, 717.41],
        [100, 10, 1, 1],
        [6.9964151270e2, 5.2771253025, 7.5962938329e-1, 1.2792483859],
    ),
    "MGH10": (
        range(50, 126, 5),
        [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820,
         3307, 2872],
        [2, 400000, 25000],
        [5.6096364710e-3, 6.1813463463e3, 3.4522363462e2],
    ),
    "MGH17": (
        range(0, 330, 10),
        [0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685,
         0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448,
         0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406],
        [50, 150, -100, 1, 2],
        [3.7541005211e-1, 1.9358469127, -1.4646871366, 1.2867534640e-2, 2.2122699662e-2],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The log-likelihood is NaN")  # exp overflows in the huge box
@pytest.mark.parametrize(
    "name",
    # MGH10 needs many restarts.
    [pytest.param(name, marks=pytest.mark.slow) if name == "MGH10" else name for name in FAR],
)
def test_far_starts_lead_to_the_certified_values(name):
    x, y, start, certified = FAR[name]
    theta, _, _ = nist.fit(
        nist.MODELS[name], np.array(x, dtype=float), np.array(y, dtype=float), start
    )
    np.testing.assert_allclose(theta, certified, rtol=1e-8)


X = np.linspace(0.0, 1.0, 8)


def problem(model, **priors):
    return sbnn.Problem.from_model(
        model, 2.0 * X, names=list(priors), noise_std=0.1, priors=dict(priors)
    )


@pytest.mark.parametrize("start", [[1.0, 0.5], None], ids=["start", "random starts"])
@pytest.mark.parametrize(
    "model",
    [lambda b: b[0] * X + 0.0 * b[1], lambda b: (b[0] + b[1]) * X],
    ids=["without effect", "only their sum has an effect"],
)
def test_undetermined_parameters_raise_one_line(model, start):
    box = Uniform(-5.0, 5.0)
    with pytest.raises(ValueError, match=r"leave parameters undetermined; .*narrow") as caught:
        sbnn.laplace(problem(model, a=box, b=box), start=start, n_starts=3, n_particles=50)
    assert "\n" not in str(caught.value)


def test_flat_point_with_an_absurd_standard_deviation_is_no_result():
    # Far from the data, both the pulse and its slope are zero in floating point.
    pulse = lambda b: jnp.exp(-0.5 * ((X - b[0]) / 0.05) ** 2)
    far = problem(pulse, b=Uniform(-1e3, 1e3))
    with pytest.raises(ValueError, match="leave parameters undetermined"):
        sbnn.laplace(far, start=[900.0], n_particles=50)


def test_mode_at_the_edge_of_a_prior_warns_and_stays_inside():
    edge = problem(lambda b: b[0] * X, b=Uniform(-1.0, 1.5))  # the data want b = 2
    with pytest.warns(ConvergenceWarning, match="stopped before a posterior mode"):
        result = sbnn.laplace(edge, n_particles=50, n_starts=3)
    assert not result.converged
    assert -1.0 <= result.details.mode[0] <= 1.5


def test_start_that_converges_is_used_as_it_is():
    line = problem(lambda b: b[0] * X, b=Uniform(-9.0, 9.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sbnn.laplace(line, start=[5.0], n_particles=50)
    assert result.converged
    np.testing.assert_allclose(result.details.mode, [2.0], rtol=1e-10)
