"""One checkpointed call in a process of its own, to be killed: METHOD KIND CHECKPOINT RESULT."""

import sys

import numpy as np

import sbnn

N_PARTICLES = 60


def data():
    x = np.linspace(-1.0, 1.0, 12)
    return x, 1.5 * x + 0.1 * np.random.default_rng(5).normal(size=len(x))


def plain(theta, data):
    """A line and a parabola, of which the data need the line: plain Python."""
    x, y = data
    residual = y - float(theta[0]) * x - float(theta[1]) * x**2
    return -50.0 * float(residual @ residual)


def compiled(theta, data):
    import jax.numpy as jnp

    x, y = data
    return -50.0 * jnp.sum((y - theta[0] * x - theta[1] * x**2) ** 2)


def failing(theta, data):
    """The same, but it raises an error in a part of the box."""
    if theta[1] > 2.0:
        raise ArithmeticError(f"no answer at {theta[1]:.3f}")
    return plain(theta, data)


def bent(theta, data):
    """A curved ridge, which a Gaussian approximates badly."""
    import jax.numpy as jnp

    x, y = data
    return -50.0 * jnp.sum((y - theta[0] * x * (1.0 + theta[1]) ** 2) ** 2)


def problem(kind: str = "plain") -> sbnn.Problem:
    function = {"plain": plain, "compiled": compiled, "failing": failing, "bent": bent}[kind]
    return sbnn.Problem(function, ["a", "b"], ard=["a", "b"], bound=4.0, data=data())


def call(method: str, kind: str, checkpoint, **options):
    options = {"key": 3, "n_particles": N_PARTICLES, **options}
    if method == "exact_evidence":
        options["log_alpha"] = np.zeros(2)
    return getattr(sbnn, method)(problem(kind), checkpoint=checkpoint, **options)


if __name__ == "__main__":
    method, kind, checkpoint, path = sys.argv[1:]
    print("started", flush=True)
    found = call(method, kind, checkpoint)
    if method == "exact_evidence":
        with open(path, "wb") as file:
            np.savez(file, log_evidence=found.log_evidence, error=found.error, draws=found.draws)
    else:
        found.save(path, overwrite=True)
