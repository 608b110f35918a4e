"""Forked children: sampling raises at once, fits without JAX work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

PROGRAM = """
import os, sys, warnings
import numpy as np
import sbnn

warnings.simplefilter("ignore")
x = np.linspace(-1, 1, 12)[:, None]
y = np.tanh(x[:, 0])

def sample():
    problem = sbnn.network_problem(x, y, (1,), noise_std=0.5)
    return sbnn.standard(problem, n_particles=50).log_evidence

def fit():
    return sbnn.SparseBNNRegressor((1,), method="laplace", n_starts=2).fit(x, y).log_evidence_

def custom():
    return sbnn.Problem(lambda theta: -theta[0] ** 2, ["a"], {"a": sbnn.priors.Normal()})

def own_jax():
    import jax.numpy as jnp
    return float(jnp.ones(3).sum())

parent, child = (globals()[name] for name in sys.argv[1:])
parent()
if os.fork() == 0:
    try:
        print("child:", np.isfinite(child()), flush=True)
    except RuntimeError as error:
        print("child:", error, flush=True)
    finally:
        os._exit(0)
os.wait()
"""


def child_says(parent, child):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, parent, child], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("child:")]
    return line


@pytest.mark.parametrize(("parent", "child"), [("sample", "sample"), ("own_jax", "custom")])
def test_jax_in_a_forked_child_raises_with_a_remedy(parent, child):
    line = child_says(parent, child)
    assert "parent had started JAX before it forked" in line
    assert "'spawn' or 'forkserver'" in line
    assert "loky" in line


@pytest.mark.parametrize(
    ("parent", "child"),
    [("sample", "fit"), ("fit", "fit"), ("fit", "sample")],
    ids=["fit after sampling", "fit after a fit", "sample after a fit"],
)
def test_forked_child_works_where_jax_was_not_running_or_is_not_needed(parent, child):
    assert child_says(parent, child) == "child: True"
