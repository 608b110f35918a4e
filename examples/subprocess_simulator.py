"""An external program as a model: `sbnn` calls `cooling_program.py`.

The program knows nothing of `sbnn`: it reads parameters and writes temperatures. It can be neither
differentiated nor compiled. Given measured temperatures of a cooling body, which of cooling rate,
ambient temperature and a suspected heater do the data support? (There is no heater.)

    python examples/subprocess_simulator.py

The program is started once and receives requests through its standard input, because starting it
takes far longer than a run. A failed run, or a program that has died, raises an error; `sbnn`
counts it and rejects the point. A program that has died is restarted.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np

import sbnn

PROGRAM = Path(__file__).parent / "cooling_program.py"
TIMES = np.array([1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0, 20.0])
NOISE_STD = 0.5
NAMES = ["rate", "ambient", "heater"]
TRUE = {"rate": 0.2, "ambient": 20.0, "heater": 0.0}


class Simulator:
    """The running program as a function of θ = (rate, ambient, heater)."""

    def __init__(self, command=(sys.executable, str(PROGRAM))):
        self.command = list(command)
        self.process: subprocess.Popen | None = None

    def __call__(self, theta) -> np.ndarray:
        answer = self._ask(" ".join(repr(float(value)) for value in theta))
        if answer.startswith("failed"):
            raise RuntimeError(f"the simulator failed at {theta}")
        return np.array(answer.split(), dtype=float)

    def _ask(self, line: str) -> str:
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.close()
            raise RuntimeError(f"the simulator ended with exit code {code} at {line}")
        return answer

    def __getstate__(self) -> dict:
        """State sent to a worker process, which starts its own copy of the program."""
        return {"command": self.command, "process": None}

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended with a line unread
                self.process.stdin.close()
            self.process.wait(timeout=10)
            self.process.stdout.close()
            self.process = None


def measure(seed: int) -> np.ndarray:
    """Noisy temperatures, from the exact solution: ambient + (90 − ambient) e^(−rate t)."""
    clean = TRUE["ambient"] + (90.0 - TRUE["ambient"]) * np.exp(-TRUE["rate"] * TIMES)
    return clean + NOISE_STD * np.random.default_rng(seed).normal(size=len(TIMES))


def make_problem(simulator: Simulator, y: np.ndarray) -> sbnn.Problem:
    return sbnn.Problem.from_model(
        simulator,
        y,
        names=NAMES,
        noise_std=NOISE_STD,
        priors={
            "rate": sbnn.priors.Normal(0.0, 0.5),  # the program rejects negative rates
            "ambient": sbnn.priors.Normal(20.0, 2.0),  # from a thermometer in the room
        },
        ard=["heater"],
        bound=5.0,
        black_box=True,
    )


def learn(problem: sbnn.Problem, n_particles: int, **options):
    # The data determine the heater to about 0.1, too precisely for the default hyperprior to prune
    # it reliably (see "Units" in docs/tutorials/physics.md), so the rate is smaller. The program is
    # deterministic, so a failed run need not be repeated.
    fine = sbnn.priors.Hyperprior(rate=1e-8)
    return sbnn.nsbl(
        problem, key=0, n_particles=n_particles, hyperprior=fine, on_failure="reject", **options
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the measurement noise")
    parser.add_argument("--particles", type=int, default=50)
    options = parser.parse_args()
    simulator = Simulator()
    try:
        problem = make_problem(simulator, measure(options.seed))
        result = learn(problem, options.particles, progress=True)
    finally:
        simulator.close()
    table = result.summary()[["mean", "std", "relevance"]].round(3)
    table.insert(0, "true", [TRUE[name] for name in NAMES])
    print(table.to_string())
    print(f"\nnot needed: {', '.join(result.prune().names) or 'nothing'}")
    print(f"verified: {result.verified} (gap {result.evidence_gap:+.2f} nats)")
    print(f"{result.n_evaluations} runs of the simulator in {result.seconds:.0f} s")
    for message in result.messages:
        print("note:", message)


if __name__ == "__main__":
    main()
