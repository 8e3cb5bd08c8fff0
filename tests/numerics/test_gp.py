"""The Gaussian process against scikit-learn's, acquisition functions against numerical integration."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from sidequest.numerics import acquisition, gp


def problem(seed, n=15, d=3):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    y = 0.7 + 0.05 * np.sin(4 * x[:, 0]) - 0.03 * x[:, 1] ** 2 + 0.005 * rng.normal(size=n)
    hyper = gp.Hyper(float(rng.uniform(0.3, 2)), float(rng.uniform(0.01, 0.3)), tuple(rng.uniform(0.2, 2, size=d)))
    return x, y, hyper, rng.random((40, d))


def reference(x, y, hyper, nu):
    # Noise as `alpha`, not as a WhiteKernel, which scikit-learn would add to predictions: the noise-free function is wanted.
    kernel = ConstantKernel(hyper.signal) * Matern(hyper.lengths, nu=nu)
    return GaussianProcessRegressor(kernel, alpha=hyper.noise + gp.JITTER, optimizer=None, normalize_y=True).fit(x, y)


@pytest.mark.parametrize("nu", [1.5, 2.5])
@pytest.mark.parametrize("seed", range(5))
def test_mean_and_deviation_match_scikit_learn(nu, seed):
    x, y, hyper, at = problem(seed)
    model = reference(x, y, hyper, nu)
    mean, deviation = gp.GP.condition(x, y, hyper, nu).predict(at)
    expected_mean, expected_deviation = model.predict(at, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9)
    np.testing.assert_allclose(deviation, expected_deviation, rtol=1e-6)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_likelihood_and_gradient_match_scikit_learn(nu):
    x, y, hyper, _ = problem(7)
    kernel = ConstantKernel(hyper.signal) * Matern(hyper.lengths, nu=nu) + WhiteKernel(hyper.noise)
    z = (y - y.mean()) / y.std()
    noisy = GaussianProcessRegressor(kernel, alpha=gp.JITTER, optimizer=None).fit(x, z)
    value, gradient = noisy.log_marginal_likelihood(noisy.kernel_.theta, eval_gradient=True)
    assert gp.GP.condition(x, y, hyper, nu).log_likelihood() == pytest.approx(value, rel=1e-9)
    flat = [gp.Prior(0.0, 1e9)] * 5  # no prior: the likelihood alone
    minus, ours = gp._Objective(x, z, nu, flat)(hyper.to_log())
    assert -minus - 0.5 * len(z) * math.log(2 * math.pi) == pytest.approx(value, rel=1e-9)
    signal, *lengths, noise = gradient  # scikit-learn's order
    np.testing.assert_allclose(-ours, [signal, noise, *lengths], rtol=1e-6)


def test_gradient_with_priors_matches_finite_differences():
    x, y, hyper, _ = problem(8)
    objective = gp._Objective(x, (y - y.mean()) / y.std(), 2.5, [gp.SIGNAL, gp.NOISE, *[gp.length_prior(3)] * 3])
    theta = hyper.to_log()
    numeric = optimize.approx_fprime(theta, lambda t: objective(t)[0], 1e-7)
    np.testing.assert_allclose(objective(theta)[1], numeric, rtol=1e-4, atol=1e-5)


def test_fit_is_at_least_as_good_as_many_random_starts():
    for seed in range(5):
        x, y, _, _ = problem(seed)
        priors = [gp.SIGNAL, gp.NOISE, *[gp.length_prior(3)] * 3]
        objective = gp._Objective(x, (y - y.mean()) / y.std(), 2.5, priors)
        found = objective(gp.fit(x, y).hyper.to_log())[0]
        rng = np.random.default_rng(seed)
        starts = rng.normal([p.centre for p in priors], [p.deviation for p in priors], size=(10, 5))
        bounds = [p.bounds for p in priors]
        others = [optimize.minimize(objective, s, jac=True, method="L-BFGS-B", bounds=bounds).fun for s in starts]
        assert found <= min(others) + 1e-3


def test_fit_finds_the_noise_and_the_dimension_that_matters():
    rng = np.random.default_rng(0)
    x = rng.random((120, 2))
    signal = np.sin(6 * x[:, 0])
    y = signal + 0.2 * rng.normal(size=120)
    hyper = gp.fit(x, y).hyper
    assert hyper.noise * y.var() == pytest.approx(0.04, rel=0.5)
    assert hyper.lengths[1] > 3 * hyper.lengths[0]


def test_equal_scores_and_repeated_points_are_no_trouble():
    x = np.array([[0.0], [0.0], [1.0]])
    mean, deviation = gp.fit(x, np.full(3, 0.5)).predict(np.array([[0.0], [0.5]]))
    np.testing.assert_allclose(mean, 0.5)
    assert np.all(deviation > 0)


def test_believing_keeps_the_mean_and_shrinks_the_variance():
    x, y, hyper, at = problem(3)
    process = gp.GP.condition(x, y, hyper)
    believing = process.believing(at[:2])
    mean, deviation = process.predict(at)
    new_mean, new_deviation = believing.predict(at)
    np.testing.assert_allclose(new_mean, mean, rtol=1e-9)
    assert np.all(new_deviation <= deviation + 1e-12)
    assert np.all(new_deviation[:2] < 0.99 * deviation[:2])
    assert process.believing(at[:0]) is process


@pytest.mark.parametrize(("mean", "deviation", "best"), [(0.2, 0.5, 0.1), (0.0, 1.0, 2.5), (1.0, 0.3, 0.0)])
def test_acquisitions_match_numerical_integration(mean, deviation, best):
    f = stats.norm(mean, deviation)
    end = mean + 40 * deviation
    improvement, _ = integrate.quad(lambda v: (v - best) * f.pdf(v), best, end, points=[mean], limit=200)
    probability, _ = integrate.quad(f.pdf, best, end, points=[mean], limit=200)
    values = acquisition.acquisitions(np.array([mean]), np.array([deviation]), best, xi=0.0, kappa=1.96)
    assert np.exp(values["ei"][0]) == pytest.approx(improvement, rel=1e-6)
    assert np.exp(values["pi"][0]) == pytest.approx(probability, rel=1e-6)
    # the bound below which f lies with probability Φ(1.96)
    below, _ = integrate.quad(f.pdf, mean - 40 * deviation, values["ucb"][0], points=[mean], limit=200)
    assert below == pytest.approx(stats.norm.cdf(1.96), rel=1e-6)


def test_log_expected_improvement_does_not_underflow():
    """Against 60-digit arithmetic: log(φ(u) + uΦ(u)) far in the tail, where EI itself is 0 in double precision."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for u in (0.5, -1.0, -1.0001, -5.0, -38.0, -200.0, -999.0, -1001.0, -1e5):
            tail, density = mpmath.ncdf(u), mpmath.npdf(u)
            ours = acquisition.log_expected_improvement(np.array([u]), np.ones(1), 0.0)[0]
            assert ours == pytest.approx(float(mpmath.log(density + u * tail)), rel=1e-9)
    values = acquisition.log_expected_improvement(-np.logspace(-2, 5, 400), np.ones(400), 0.0)
    assert np.all(np.diff(values) < 0)  # strictly ordered to the far end: no ties, no jump between branches


def test_hedge_probabilities():
    np.testing.assert_allclose(acquisition.hedge_probabilities(np.zeros(3), 1.0), 1 / 3)
    p = acquisition.hedge_probabilities(np.array([1000.0, 999.0, -1000.0]), 1.0)
    np.testing.assert_allclose(p, [1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0], atol=1e-12)
