"""`SparseBNNRegressor`: the methods behind a scikit-learn interface.

Imports `methods`, `tables` and what is below them.
"""
