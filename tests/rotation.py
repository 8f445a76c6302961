"""Mobility of spheres by forces and torques: plain formulas of Wajnryb, Mizerski, Zuk and Szymczak (2013)."""

import numpy as np


def separate(d, a):
    """Return C, P and Q of spheres apart, at distances d > 0: t × r C, and t P + (r·t) r Q."""
    return 1 / d**3, -1 / (2 * d**3), 3 / (2 * d**5)


def overlapping(d, a):
    """Return C, P and Q of spheres that overlap, Q without its value at d = 0."""
    x, safe = d / a, np.where(d > 0, d, 1.0)
    c = (1 - 3 * x / 8) / (2 * a**3)
    p = (1 - 27 * x / 32 + 5 * x**3 / 64) / a**3
    return c, p, np.where(d > 0, (9 * x / 32 - 3 * x**3 / 64) / (a**3 * safe**2), 0.0)


def flow(r, f, t, a):
    """Return velocities and angular velocities (6, …) at r (3, …) from spheres with forces and torques (3, …)."""
    d = np.sqrt(np.sum(r * r, axis=0))
    safe, near = np.where(d > 0, d, 1.0), d < 2 * a
    c, p, q = (np.where(near, *pair) for pair in zip(overlapping(d, a), separate(safe, a), strict=True))
    big_a = np.where(near, (4 / 3 - 3 * d / (8 * a)) / a, 1 / safe + 2 * a**2 / (3 * safe**3))
    big_b = np.where(near, np.where(d > 0, 1 / (8 * a**2 * safe), 0.0), 1 / safe**3 - 2 * a**2 / safe**5)
    velocity = big_a * f + big_b * np.sum(r * f, axis=0) * r + c * np.cross(t, r, axis=0)
    return np.concatenate([velocity, p * t + q * np.sum(r * t, axis=0) * r + c * np.cross(f, r, axis=0)])


def of_one(r, length, s, a):
    """Return the velocity and the angular velocity (6,) at r (3,) from a sphere with a force and a torque, s (6,)."""
    return flow(r, s[:3], s[3:], a)


def of_itself(s, a):
    """Return the velocity and the angular velocity (6, …) of a sphere by itself with a force and a torque, s (6, …)."""
    return np.concatenate([4 / (3 * a) * s[:3], s[3:] / a**3])
