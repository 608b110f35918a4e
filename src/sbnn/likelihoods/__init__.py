"""Likelihoods: how observations scatter around the predictions of a model.

Imports `_core` and `priors`.
"""
