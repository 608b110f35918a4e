"""A simulator as others hand it over: a program that reads numbers and writes numbers.

Each line of standard input holds three numbers, `rate ambient heater`; each line of standard
output holds the temperatures of a cooling body at eight times, or the word `failed` (a negative
rate). The programs of real life are large; this one is a short loop in plain Python.
"""

import sys

TIMES = [1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0, 20.0]
START = 90.0
STEP = 0.1
AT = {round(t / STEP) for t in TIMES}


def temperatures(rate, ambient, heater):
    """T' = −rate (T − ambient) + heater, from T = 90, at the eight times."""
    if rate < 0:
        raise ValueError("a body does not heat itself: the rate must not be negative")
    out, temperature = [], START
    half = 0.5 * STEP * rate  # Crank–Nicolson: T' is the mean of its values before and after
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
