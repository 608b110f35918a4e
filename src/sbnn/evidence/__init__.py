"""The evidence as a function of the prior precisions α: closed form, Laplace, exact.

Imports `sampling` and the packages below it.
"""
