"""The Laplace engine: sparse optima of the evidence and mixtures of them.

Imports `problems` and the packages below it.
"""
