"""A likelihood from outside the package goes through sampling, NSBL and the regressor."""

import numpy as np
from scipy import special, stats

import sbnn
from sbnn.likelihoods import Likelihood, namespace


class Logistic(Likelihood):
    """y = f + s · logistic noise, θ = log s: tails heavier than normal ones."""

    parameters = ("log_s",)

    def log_density(self, y, f, theta):
        z = (y - f[..., 0]) * namespace(y, f, theta).exp(-theta[..., 0])
        return -z - 2 * namespace(z).logaddexp(0.0 * z, -z) - theta[..., 0]

    def information(self, f, theta):
        return namespace(f, theta).exp(-2 * theta) / 3 + 0 * f

    def std(self, f, theta):
        return np.exp(theta[..., 0]) * np.pi / np.sqrt(3) + 0 * f[..., 0]

    def sample(self, rng, f, theta):
        return f[..., 0] + np.exp(theta[..., 0]) * rng.logistic(size=f.shape[:-1])

    def cdf(self, y, f, theta):
        return stats.logistic.cdf((y - f[..., 0]) * np.exp(-theta[..., 0]))

    def priors(self, y):
        return (sbnn.priors.Normal(float(np.log(y.std() / 3)), 1.5),)


X = np.random.default_rng(0).uniform(-2, 2, size=(80, 1))
Y = 1.5 * X[:, 0] + 0.3 * np.random.default_rng(1).logistic(size=80)


def exact_log_evidence():  # slope and intercept uniform on ±5, and log s: on a grid
    axes = [np.linspace(*ends, 61) for ends in ((1.2, 1.8), (-0.4, 0.4), (-2, -0.4))]
    w, b, t = np.meshgrid(*axes, indexing="ij")
    z = (Y - (w[..., None] * X[:, 0] + b[..., None])) / np.exp(t)[..., None]
    prior = stats.norm.logpdf(t, np.log(Y.std() / 3), 1.5) - 2 * np.log(10)
    cell = np.log(np.prod([axis[1] - axis[0] for axis in axes]))
    return cell + special.logsumexp(stats.logistic.logpdf(z).sum(-1) - 80 * t + prior)


def test_a_new_likelihood_works_everywhere():
    problem = sbnn.network_problem(X, Y, (), noise=Logistic(), bound=5.0)
    full = sbnn.standard(problem, key=0, n_particles=1000)
    assert abs(full.log_evidence - exact_log_evidence()) < 4 * full.log_evidence_error
    slope, intercept, _ = sbnn.nsbl(problem, key=0, n_particles=200, average=False).relevance
    assert slope > 0.9 > intercept
    model = sbnn.SparseBNNRegressor((3,), noise=Logistic(), n_starts=4, random_state=0).fit(X, Y)
    new = np.linspace(-1.5, 1.5, 40)[:, None]
    mean, interval = model.predict(new, return_interval=0.9)
    assert np.abs(mean - 1.5 * new[:, 0]).max() < 0.4
    draws = model.sample_y(new, 500)
    assert abs(((interval[:, :1] < draws) & (draws < interval[:, 1:])).mean() - 0.9) < 0.02
