"""Design of experiments: which measurement to take next, given the posterior.

Imports `tables` and `scores`. `candidates` makes the rows to choose from, `criteria` chooses among
them, and `suggestions` is the part of `SparseBNNRegressor` that does both.
"""
