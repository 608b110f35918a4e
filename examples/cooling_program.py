"""A stand-in for an external simulator: it reads parameters and writes numbers.

Each input line holds three numbers, `rate ambient heater`. Each output line holds the temperatures
of a cooling body at eight times, or the word `failed` if the rate is negative. Real simulators are
large; this one is a short loop in plain Python.
"""

import sys

TIMES = [1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0, 20.0]
START = 90.0
STEP = 0.1
AT = {round(t / STEP) for t in TIMES}


def temperatures(rate, ambient, heater):
    """Solution of T' = −rate (T − ambient) + heater with T(0) = 90, at the eight times."""
    if rate < 0:
        raise ValueError("the rate must not be negative")
    out, temperature = [], START
    half = 0.5 * STEP * rate  # Crank–Nicolson: T' is averaged over both ends of a step
    gain = STEP * (heater + rate * ambient)
    for i in range(1, max(AT) + 1):
        temperature = ((1 - half) * temperature + gain) / (1 + half)
        if i in AT:
            out.append(temperature)
    return out


def main():
    for line in sys.stdin:
        try:
            answer = temperatures(*(float(word) for word in line.split()))
            print(*(f"{value:.9g}" for value in answer), flush=True)
        except (ValueError, TypeError) as error:
            print(error, file=sys.stderr)
            print("failed", flush=True)


if __name__ == "__main__":
    main()
