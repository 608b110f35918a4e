"""The Laplace engine: sparse optima of the evidence, and the mixture of them.

Imports `problems` and what is below it.
"""
