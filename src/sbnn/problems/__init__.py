"""Problems: a log-likelihood with names and priors, from a network or a user's model.

Imports `_core`, `priors` and `likelihoods`.
"""
