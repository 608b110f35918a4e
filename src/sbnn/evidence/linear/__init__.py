"""Sparse Bayesian learning of models that are linear in their weights, from blocks of rows.

Imports `evidence.closed_form`, `evidence.newton` and the packages below `evidence`.
"""
