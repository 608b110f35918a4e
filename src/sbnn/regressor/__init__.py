"""`SparseBNNRegressor`: the methods behind a scikit-learn interface.

Imports `methods`, `tables` and the rooms below them.
"""
