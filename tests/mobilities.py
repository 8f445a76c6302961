"""Matrices of plans, and covariances of samples against them."""

import numpy as np


def matrix(plan):
    """Return the matrix of a plan whose targets are its sources, a column a call: blocks take kernels of their own."""
    n = plan.kernel.dens * plan.n_sources
    return np.stack([plan(unit.reshape(plan.kernel.dens, -1)).ravel() for unit in np.eye(n)], axis=1)


def dense(plan):
    """Return the matrix of a plan whose targets are its sources, symmetric."""
    columns = matrix(plan)
    return 0.5 * (columns + columns.T)


def deviations(samples, matrix):
    """Return the entries of the covariance of samples (count, n) less the matrix, over the errors of sampling."""
    count, scale = len(samples), np.diag(matrix)
    spread = np.sqrt((np.outer(scale, scale) + matrix**2) / count)
    return (samples.T @ samples / count - matrix) / spread
