"""`sbnn.last_layer`: sparse Bayesian learning of the linear output layer of any features.

Imports `evidence.linear` and the packages below `methods`.
"""
