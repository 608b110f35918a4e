"""Nonlinear regression compared with certified values: modes and standard deviations of NIST StRD.

    python benchmarks/nist.py --data DIR      # the folder with Misra1a.dat, Thurber.dat, …

From both of NIST's starting points, `sbnn.laplace` climbs to the mode of a model with a flat prior.
The noise is the residual standard deviation with n − p degrees of freedom, as in the certificates.
Prints the number of correct digits (−log₁₀ of the relative error of the worst parameter) of
parameters and standard deviations, and writes it to benchmarks/results/nist.csv.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import sbnn

OUT = Path(__file__).parent / "results" / "nist.csv"


class Certified(NamedTuple):
    """A data set with its certificate."""

    x: np.ndarray
    y: np.ndarray
    starts: np.ndarray  # (2, p)
    parameters: np.ndarray
    standard_deviations: np.ndarray
    residual_standard_deviation: float


def cubic_over_cubic(b, x):
    top = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    return top / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def two_peaks(b, x):
    first = b[2] * jnp.exp(-((x - b[3]) ** 2) / b[4] ** 2)
    second = b[5] * jnp.exp(-((x - b[6]) ** 2) / b[7] ** 2)
    return b[0] * jnp.exp(-b[1] * x) + first + second


MODELS = {
    "Misra1a": lambda b, x: b[0] * (1 - jnp.exp(-b[1] * x)),
    "Gauss1": two_peaks,
    "Hahn1": cubic_over_cubic,
    "Thurber": cubic_over_cubic,
    "BoxBOD": lambda b, x: b[0] * (1 - jnp.exp(-b[1] * x)),
    "Rat42": lambda b, x: b[0] / (1 + jnp.exp(b[1] - b[2] * x)),
    "Rat43": lambda b, x: b[0] / (1 + jnp.exp(b[1] - b[2] * x)) ** (1 / b[3]),
    "MGH10": lambda b, x: b[0] * jnp.exp(b[1] / (x + b[2])),
    "MGH17": lambda b, x: b[0] + b[1] * jnp.exp(-x * b[3]) + b[2] * jnp.exp(-x * b[4]),
    "MGH09": lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
}


def read(path: Path) -> Certified:
    """Read a file in the StRD format: certificate in the `b1 =` lines, data below `Data:`."""
    text = path.read_text()
    rows = [
        line.split("=")[1].split() for line in text.splitlines() if re.match(r" *b\d+ *=", line)
    ]
    table = np.array(rows, dtype=float)
    residual = re.search(r"Residual Standard Deviation: *(\S+)", text)
    data = np.array([line.split() for line in text.split("Data:")[-1].splitlines()[1:]], float)
    if residual is None or table.shape[1] != 4 or data.shape[1] != 2:
        raise ValueError(f"{path} is not a StRD file of one predictor with its certificate.")
    return Certified(
        data[:, 1], data[:, 0], table[:, :2].T, table[:, 2], table[:, 3], float(residual[1])
    )


def fit(model, x, y, start) -> tuple[np.ndarray, np.ndarray, float]:
    """Parameters, their standard deviations and σ; alternates noise and mode until σ converges."""
    names = [f"b{i + 1}" for i in range(len(start))]
    size = 1e6 * np.maximum(np.abs(start), 1.0)
    flat = {n: sbnn.priors.Uniform(-s, s) for n, s in zip(names, size)}
    theta, sigma = np.asarray(start, dtype=float), float(np.std(y))
    for _ in range(20):
        problem = sbnn.Problem.from_model(
            lambda b: model(b, x), y, names=names, noise_std=sigma, priors=flat
        )
        result = sbnn.laplace(problem, start=theta, n_particles=50)
        theta = result.details.mode
        with jax.enable_x64(True):
            residual = y - np.asarray(model(theta, x))
        old, sigma = sigma, float(np.sqrt((residual**2).sum() / (len(y) - len(theta))))
        if abs(sigma / old - 1) < 1e-10:
            break
    return theta, np.sqrt(np.diag(result.details.covariance)), sigma


def digits(value, certified) -> float:
    """−log₁₀ of the largest relative error; certificates have eleven digits."""
    error = np.max(np.abs(np.asarray(value) / certified - 1))
    return float(min(11.0, -np.log10(max(error, 1e-300))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the .dat files")
    options = parser.parse_args()
    rows = []
    for name, model in MODELS.items():
        path = options.data / f"{name}.dat"
        if not path.exists():
            print(f"{name}: no {path}; skipped")
            continue
        certified = read(path)
        for number, start in enumerate(certified.starts, start=1):
            theta, std, sigma = fit(model, certified.x, certified.y, start)
            rows.append(
                {
                    "set": name,
                    "start": number,
                    "parameters": digits(theta, certified.parameters),
                    "standard_deviations": digits(std, certified.standard_deviations),
                    "noise": digits(sigma, certified.residual_standard_deviation),
                }
            )
    if not rows:
        raise SystemExit(f"No data in {options.data}; download the sets from NIST's StRD pages.")
    table = pd.DataFrame(rows).round(1)
    print("correct digits (worst parameter):")
    print(table.to_string(index=False))
    held = (table["parameters"] >= 6) & (table["standard_deviations"] >= 4)
    print(f"parameters to 6 digits and standard deviations to 4: {held.sum()} of {len(table)}")
    OUT.parent.mkdir(exist_ok=True)
    table.to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
