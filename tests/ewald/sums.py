"""Slow, exact sums of every kernel with 0 to 3 periodic directions, in double precision, for some tens of points.

u(x_i) = Σ_j Σ_p K(x_i − y_j + p) s_j, pairs at zero distance skipped; the first directions are periodic, the rest free.
All kernels but Yukawa are derivatives of A = 1/r (laplace) or B = r (Stokes):

    S_ij = δ_ij ∇²B − ∂ᵢ∂ⱼB        T_ijk = δ_ij ∂ₖ∇²B + δ_jk ∂ᵢ∇²B + δ_ki ∂ⱼ∇²B − 2 ∂ᵢ∂ⱼ∂ₖB        p_j = −2 ∂ⱼA

A and B are split in Fourier space by exp(−c) and (1 + c) exp(−c), c = k²/4ξ², both parts cut below rounding.  In free
directions the plane waves have a period so long that images vanish; modes that are constant in all periodic directions
have closed forms.  Their constants: laplace −2π|z|/A, −2 ln ρ/L; Stokes from B = −2π|z|³/3A, −ρ² ln ρ/L; with three
periodic directions the mode k = 0 is zero, but for Yukawa, whose sum converges.
"""

import numpy as np
from scipy.special import erf, erfc, exp1
from threadpoolctl import threadpool_limits

from tests import rotation
from tests.ewald import blob_dipoles, blobs

REACH = 6.6  # reach of near fields in 1/ξ, of modes in 2ξ: exp(−REACH²) is below 1e-18
DECAY = 42.0  # gap to images along free directions, in decay lengths: exp(−DECAY) is below rounding
EULER = 0.57721566490153286061
SCREENED = ("yukawa", "yukawa_grad")
HARMONIC = ("laplace", "laplace_grad", "laplace_dipole", "stokes_pressure", "rotlet", "curvature")
#: Parameters for tests that need some.
PARAMETERS = {"yukawa": {"kappa": 2.0}, "rpy": {"radius": 0.06}, "rpy_rotation": {"radius": 0.06}}
BLOBS = {"regularised_stokeslet": blobs, "regularised_dipole": blob_dipoles}
PARAMETERS |= {name: {"epsilon": 0.05} for name in BLOBS}
#: Numbers of components of the results; 3 for others.
RESULT = {"laplace": 1, "laplace_dipole": 1, "stokes_pressure": 1, "yukawa": 1, "stokes_grad": 9, "rpy_rotation": 6}


# Many small products: more threads only wait for each other on a shared machine.
@threadpool_limits.wrap(limits=1, user_api="blas")
def periodic(
    kernel, trg, src, dens, normals=None, box=(1.0, 1.0, 1.0), periodicity=3, xi=None, kappa=None,
    skew=(0.0, 0.0, 0.0), radius=None, epsilon=None,
):  # fmt: skip
    """Return u, (Nt,) or (components, Nt); the result does not depend on `xi`.

    Spheres of a radius a have S_ij − 2a²/3 ∂ᵢ∂ⱼA, "curvature", where they are apart.

    With a `skew` t01, t02, t12 the lattice vectors of a fully periodic sum are (l0, t01, t02), (0, l1, t12) and
    (0, 0, l2).
    """
    x, y, s = (np.asarray(a, np.float64) for a in (trg, src, dens))
    s = s.reshape(-1, y.shape[1])
    n = None if normals is None else np.asarray(normals, np.float64)
    box = np.asarray(box, np.float64)
    kappa = epsilon if kernel in BLOBS else kappa
    last = box, periodicity, xi, kappa, skew
    if kernel == "stokes_dipole":
        return dipoles(lambda f: periodic("stokes_grad", x, y, f, None, *last), s)
    if kernel.endswith("_and_grad"):
        parts = [kernel.removesuffix("_and_grad"), kernel.replace("_and_grad", "_grad")]
        return np.concatenate([np.atleast_2d(periodic(part, x, y, s, None, *last)) for part in parts])
    if kernel == "rpy":
        apart = periodic("stokes_sl", x, y, s, n, *last) - 2 / 3 * radius**2 * periodic("curvature", x, y, s, n, *last)
        if periodicity == 3:  # ∇⁴B = −8π (δ − 1/V)
            apart += 8 / 3 * np.pi * radius**2 / np.prod(box) * s.sum(axis=1, keepdims=True)
        return apart + overlaps(x, y, s, box, periodicity, skew, radius)
    if kernel == "rpy_rotation":
        return rotating(x, y, s, last, radius)
    if kernel == "stokes_comb":
        return periodic("stokes_sl", x, y, s[:3], None, *last) + periodic("stokes_dl", x, y, s[3:], n, *last)
    if xi is None and periodicity:
        xi = (6.5 if periodicity == 3 else 4.5) / np.prod(box[:periodicity]) ** (1 / max(periodicity, 1))
    u = near(kernel, x, y, s, n, box, periodicity, xi if periodicity else 0.0, kappa, skew)
    if periodicity:
        u += far(kernel, x, y, s, n, box, periodicity, xi, kappa, skew)
    if periodicity == 3 and kernel == "laplace":
        u -= np.pi / (xi**2 * np.prod(box)) * s.sum()
    if periodicity in (1, 2) and kernel not in SCREENED:
        u += constant_modes(kernel, x, y, s, n, box, periodicity, xi, kappa)
    return u[0] if len(u) == 1 else u


def lattice(box, skew):
    """Return the lattice vectors, one a row."""
    return np.diag(box) + np.array([[0, *skew[:2]], [0, 0, skew[2]], [0, 0, 0]])


# Pairs


def near(kernel, x, y, s, n, box, periodicity, xi, kappa, skew):
    """Sum images within REACH/ξ, minus the far kernel at coincident points; ξ = 0 takes the kernels themselves."""
    r0 = x[:, :, None] - y[:, None, :]
    counts = np.zeros(3, int)
    vectors = lattice(box, skew)
    for d in range(periodicity):
        r0 -= vectors[d][:, None, None] * np.round(r0[d] / box[d])
        counts[d] = int(np.ceil(REACH / (xi * box[d]) + 0.5 + np.abs(vectors[:d, d]) @ counts[:d] / box[d]))
    out = np.zeros((RESULT.get(kernel, 3), x.shape[1]))
    for image in np.ndindex(*(2 * counts + 1)):
        shift = (np.array(image) - counts) @ vectors
        gap = np.maximum(np.abs(shift) - 0.5 * box, 0.0) * (counts > 0)
        if xi == 0 or np.linalg.norm(gap) < REACH / xi:
            out += pairs(kernel, r0 + shift[:, None, None], s, n, xi, 1e-14 * box.max(), kappa)
    return out


def pairs(kernel, r, s, n, xi, tiny, kappa):
    """Sum the near kernels over the sources; r (3, Nt, Ns)."""
    if kernel in BLOBS:
        return BLOBS[kernel].pairs(r, s, xi, kappa)
    if kernel == "stokes_dipole":
        return dipoles(lambda f: pairs("stokes_grad", r, f, n, xi, tiny, kappa), s)
    tau = np.sum(r * r, axis=0)
    same = tau <= tiny**2
    tau = np.where(same, 1.0, tau)
    d = np.sqrt(tau)
    if kernel == "yukawa":
        return (yukawa(d, same, xi, kappa) @ s[0])[None]
    if kernel == "yukawa_grad":
        return (yukawa_slope(d, same, xi, kappa) * r) @ s[0]
    a = np.where(same, 0.0, erfc(xi * d) / d)
    b = np.where(same, 0.0, 2 * xi / np.sqrt(np.pi) * np.exp(-(xi**2) * tau))
    at_zero = same * 2 * xi / np.sqrt(np.pi)
    if kernel in HARMONIC:
        spread = np.where(same, -4 * xi**3 / (3 * np.sqrt(np.pi)), (a + b) / tau)
        bend = 3 * (a + b) / tau**2 + 2 * xi**2 * b / tau
        curvature = bend * r[:, None] * r - np.eye(3)[:, :, None, None] * spread
        return harmonic(kernel, a - at_zero, -(a + b) / tau * r, curvature, s)
    # Derivatives of B by τ: the first is a/2, the second −(a + b)/4τ.
    third = 3 * (a + b) / (8 * tau**2) + xi**2 * b / (4 * tau)
    second = -(a + b) / (4 * tau)
    identity = np.eye(3)[:, :, None, None]
    two = identity * (a - at_zero) + 4 * second * r[:, None] * r
    lap = np.einsum("iimn->mn", two)
    grad = 2 * r * (10 * second + 4 * tau * third)
    mixed = identity[:, :, None] * r + identity[:, None] * r[:, None]
    mixed = mixed + np.moveaxis(identity[:, :, None] * r, (0, 1, 2), (1, 2, 0))
    three = 4 * second * mixed + 8 * third * r[:, None, None] * r[:, None] * r
    return stokes(kernel, lap, grad, two, three, s, n)


def images(x, y, box, periodicity, skew, radius):
    """Yield targets less images of sources that may overlap, (3, Nt, Ns), their distances, and a mask of distance 0."""
    r0 = x[:, :, None] - y[:, None, :]
    counts = [int(np.ceil(2 * radius / box[d])) + 2 if d < periodicity else 0 for d in range(3)]
    for image in np.ndindex(*(2 * m + 1 for m in counts)):
        r = r0 + ((np.array(image) - counts) @ lattice(box, skew))[:, None, None]
        d = np.sqrt(np.sum(r * r, axis=0))
        yield r, d, d <= 1e-14 * box.max()


def overlaps(x, y, s, box, periodicity, skew, radius):
    """Sum Rotne–Prager–Yamakawa mobilities, less those of spheres apart, over spheres that overlap, and themselves."""
    out = np.zeros((3, x.shape[1]))
    for r, d, same in images(x, y, box, periodicity, skew, radius):
        touching = d < 2 * radius
        safe = np.where(same, 1.0, d)
        a = np.where(same, 0.0, 1 / safe + 2 * radius**2 / (3 * safe**3))
        b = np.where(same, 0.0, 1 / safe**3 - 2 * radius**2 / safe**5)
        a = touching * (4 / (3 * radius) - 3 * d / (8 * radius**2) - a)
        b = touching * (np.where(same, 0.0, 1 / (8 * radius**2 * safe)) - b)
        out += s @ a.T + np.einsum("imn,mn->im", r, b * np.einsum("imn,in->mn", r, s))
    return out


def rotating(x, y, s, last, radius):
    """Sum velocities and angular velocities of spheres, half the curl: of torques ½(∂ᵢ∂ⱼA − δ_ij ∇²A)."""
    (f, t), (box, periodicity, _, _, skew) = s.reshape(2, 3, -1), last
    u = periodic("rpy", x, y, f, None, *last, radius=radius) + periodic("rotlet", x, y, t, None, *last)
    o = periodic("rotlet", x, y, f, None, *last) + 0.5 * periodic("curvature", x, y, t, None, *last)
    if periodicity == 3:
        o -= 2 * np.pi / np.prod(box) * t.sum(axis=1, keepdims=True)
    for r, d, same in images(x, y, box, periodicity, skew, radius):
        safe = np.where(same, 1.0, d)
        far = (np.where(same, 0.0, value) for value in rotation.separate(safe, radius))
        c, p, q = ((d < 2 * radius) * (a - b) for a, b in zip(rotation.overlapping(d, radius), far, strict=True))
        u += np.einsum("mn,imn->im", c, np.cross(t[:, None], r, axis=0))
        o += np.einsum("mn,imn->im", c, np.cross(f[:, None], r, axis=0))
        o += t @ p.T + np.einsum("imn,mn->im", r, q * np.einsum("imn,in->mn", r, t))
    return np.concatenate([u, o])


def dipoles(slopes, s):
    """Return minus the derivatives along each axis of the flows of forces, a column of D for each axis."""
    return -sum(slopes(s[j::3]).reshape(3, 3, -1)[:, j] for j in range(3))


def harmonic(kernel, value, slope, curvature, s):
    """Sum a harmonic kernel from A, ∇A and ∇∇A of every pair, (Nt, Ns), (3, Nt, Ns) and (3, 3, Nt, Ns)."""
    if kernel == "curvature":
        return np.einsum("ijmn,jn->im", curvature, s)
    if kernel == "rotlet":
        products = np.einsum("imn,jn->ijm", slope, s)
        return products[[1, 2, 0], [2, 0, 1]] - products[[2, 0, 1], [1, 2, 0]]
    if kernel == "laplace":
        return (value @ s[0])[None]
    if kernel == "laplace_grad":
        return slope @ s[0]
    return {"laplace_dipole": -1, "stokes_pressure": -2}[kernel] * np.einsum("dmn,dn->m", slope, s)[None]


def stokes(kernel, lap, grad, two, three, s, n):
    """Sum a Stokes kernel from ∇²B, ∇∇²B, ∂ᵢ∂ⱼB, ∂ᵢ∂ⱼ∂ₖB of every pair."""
    if kernel == "stokes_sl":
        return s @ lap.T - np.einsum("ijmn,jn->im", two, s)
    if kernel == "stokes_grad":
        return (np.einsum("jmn,in->ijm", grad, s) - np.einsum("ijkmn,kn->ijm", three, s)).reshape(9, -1)
    u = np.einsum("imn,n->im", grad, np.sum(s * n, axis=0)) - 2 * np.einsum("ijkmn,jn,kn->im", three, s, n)
    return u + np.einsum("jmn,in,jn->im", grad, s, n) + np.einsum("jmn,in,jn->im", grad, n, s)


def yukawa(d, same, xi, kappa):
    """Return the near kernel of every pair."""
    if xi == 0:
        return np.where(same, 0.0, np.exp(-kappa * d) / d)
    half = kappa / (2 * xi)
    near = np.exp(kappa * d) * erfc(xi * d + half) + np.exp(-kappa * d) * erfc(xi * d - half)
    at_zero = 2 * xi / np.sqrt(np.pi) * np.exp(-(half**2)) - kappa * erfc(half)
    return np.where(same, -at_zero, near / (2 * d))


def yukawa_slope(d, same, xi, kappa):
    """Return the derivative of the near kernel of every pair, divided by the distance."""
    grown, faded = np.exp(kappa * d), np.exp(-kappa * d)
    if xi == 0:
        return np.where(same, 0.0, -(1 + kappa * d) * faded / d**3)
    half = kappa / (2 * xi)
    both = grown * erfc(xi * d + half) + faded * erfc(xi * d - half)
    bell = 4 * xi / np.sqrt(np.pi) * np.exp(-((xi * d) ** 2) - half**2)
    slope = kappa * (grown * erfc(xi * d + half) - faded * erfc(xi * d - half)) - bell
    return np.where(same, 0.0, (slope - both / d) / (2 * d**2))


# Plane waves


def far(kernel, x, y, s, n, box, periodicity, xi, kappa, skew):
    """Sum modes up to 2ξ REACH that vary in a periodic direction, of Yukawa all; k₀ >= 0, the rest by conjugation."""
    period = box.copy()
    for d in range(periodicity, 3):
        both, decay = np.concatenate([x[d], y[d]]), 2 * np.pi / box[:periodicity].max()
        period[d] = np.ptp(both) + DECAY / (min(decay, kappa) if kernel in SCREENED else decay)
    kmax = 2 * xi * REACH
    waves = []
    vectors = lattice(box, skew)
    along = np.linalg.inv(vectors / box[:, None]).T  # to coordinates along the lattice vectors, and back to k
    x, y = along @ x, along @ y
    for d in range(3):
        m = int(np.ceil(kmax * max(period[d], np.linalg.norm(vectors[d])) / (2 * np.pi)))
        waves.append(2 * np.pi / period[d] * np.arange(0 if d == 0 else -m, m + 1))
    there = [np.exp(-1j * np.outer(y[d], waves[d])) for d in range(3)]
    here = [np.exp(1j * np.outer(x[d], waves[d])) for d in range(3)]
    strengths = s if kernel != "stokes_dl" else (s[:, None] * n[None]).reshape(9, -1)
    out = np.zeros((RESULT.get(kernel, 3), x.shape[1]))
    for i, k0 in enumerate(waves[0]):
        k = np.array(np.broadcast_arrays(k0, waves[1][:, None], waves[2]))
        k = np.einsum("ij,iab->jab", along, k) if any(skew) else k
        kk = np.sum(k * k, axis=0)
        drop = np.all(k[:periodicity] == 0, axis=0) & (kernel not in SCREENED)
        weight = np.where(drop, 0.0, (1 if i == 0 else 2) / np.prod(period))
        rho = np.array([(there[1] * (g * there[0][:, i])[:, None]).T @ there[2] for g in strengths])
        v = modes(kernel, rho, k, np.where(drop, 1.0, kk), weight, xi, kappa)
        for row, values in zip(out, v, strict=True):
            row += (((here[1] @ values) * here[2]).sum(axis=1) * here[0][:, i]).real
    return out


def modes(kernel, rho, k, kk, weight, xi, kappa):
    """Multiply the modes ρ of one plane by the multipliers of a kernel."""
    c = kk / (4 * xi**2)
    if kernel in BLOBS:
        return BLOBS[kernel].modes(rho, k, kk, weight, xi, kappa, REACH)
    if kernel in SCREENED:
        v = 4 * np.pi * weight * np.exp(-c - (kappa / (2 * xi)) ** 2) / (kk + kappa**2) * rho
        return v if kernel == "yukawa" else 1j * k * v
    if kernel in HARMONIC:
        A = 4 * np.pi * weight * np.exp(-c) / kk
        if kernel == "laplace":
            return A * rho
        if kernel == "laplace_grad":
            return 1j * k * A * rho
        if kernel == "curvature":
            return -k * A * np.sum(k * rho, axis=0)
        if kernel == "rotlet":
            return 1j * A * np.cross(k, rho, axis=0)
        return {"laplace_dipole": -1, "stokes_pressure": -2}[kernel] * np.sum(1j * k * A * rho, axis=0)[None]
    B = -8 * np.pi * weight * (1 + c) * np.exp(-c) / kk**2
    if kernel in ("stokes_sl", "stokes_grad"):
        v = B * (k * np.sum(k * rho, axis=0) - kk * rho)
        return v if kernel == "stokes_sl" else (v[:, None] * 1j * k[None]).reshape(9, *kk.shape)
    h = rho.reshape(3, 3, *kk.shape)
    first, second = np.einsum("ijab,jab->iab", h, k), np.einsum("ijab,iab->jab", h, k)
    trace = np.einsum("iiab->ab", h)
    return 1j * B * (2 * k * np.sum(k * first, axis=0) - kk * (first + second + k * trace))


# Modes that are constant in all periodic directions


def constant_modes(kernel, x, y, s, n, box, periodicity, xi, kappa):
    """Return the far field of lines or planes of sources."""
    r = x[:, :, None] - y[:, None, :]
    r[:periodicity] = 0.0
    if kernel in BLOBS:
        return BLOBS[kernel].constant_modes(r, s, xi, box, periodicity, kappa)
    value, slope, lap, grad = (plane if periodicity == 2 else line)(r, xi, box)
    if kernel in HARMONIC:
        curvature = (plane_curvature if periodicity == 2 else line_curvature)(r, xi, box)
        return harmonic(kernel, value, slope, curvature, s)
    if periodicity == 2:
        two, three = np.zeros((3, 3, *lap.shape)), np.zeros((3, 3, 3, *lap.shape))
        two[2, 2], three[2, 2, 2] = lap, grad[2]
    else:
        two, three = line_tensors(r, value, xi, box[0])
    return stokes(kernel, lap, grad, two, three, s, n)


def plane(r, xi, box):
    """Return A, ∇A, ∇²B, ∇∇²B of a plane of sources."""
    z, area = r[2], box[0] * box[1]
    e, g = erf(xi * z), np.exp(-((xi * z) ** 2)) / np.sqrt(np.pi)
    slope, grad = np.zeros_like(r), np.zeros_like(r)
    slope[2] = -2 * np.pi / area * e
    grad[2] = -4 * np.pi / area * (e + xi * z * g)
    value = -2 * np.pi / area * (z * e + g / xi)
    return value, slope, -4 * np.pi / area * (z * e + g / (2 * xi)), grad


def plane_curvature(r, xi, box):
    """Return ∇∇A of a plane of sources."""
    out = np.zeros((3, *r.shape))
    out[2, 2] = -4 * np.sqrt(np.pi) * xi / (box[0] * box[1]) * np.exp(-((xi * r[2]) ** 2))
    return out


def line_curvature(r, xi, box):
    """Return ∇∇A of a line of sources."""
    first, second = line_moments(xi**2 * (r[1] ** 2 + r[2] ** 2))
    across = np.diag([0.0, 1.0, 1.0])[:, :, None, None]
    return -2 * xi**2 / box[0] * (across * first - 2 * xi**2 * second * r[:, None] * r)


def line(r, xi, box):
    """Return A, ∇A, ∇²B, ∇∇²B of a line of sources."""
    v = xi**2 * (r[1] ** 2 + r[2] ** 2)
    safe = np.where(v > 0, v, 1.0)
    log = 2 * np.log(xi) + np.where(v > 0, -np.log(safe) - exp1(safe), EULER)
    first = line_moments(v)[0]
    return (
        log / box[0],
        -2 * xi**2 / box[0] * first * r,
        (2 * log + 2 * np.exp(-v) - 4) / box[0],
        -4 * xi**2 / box[0] * (first + np.exp(-v)) * r,
    )


def line_moments(v):
    """Return (1 − e⁻ᵛ)/v and (1 − e⁻ᵛ(1 + v))/v²."""
    safe = np.where(v > 1e-8, v, 1.0)
    first = np.where(v > 1e-8, -np.expm1(-safe) / safe, 1 - v / 2)
    series = 0.5 - v / 3 + v**2 / 8 - v**3 / 30 + v**4 / 144 - v**5 / 840 + v**6 / 5760
    return first, np.where(v > 0.02, (-np.expm1(-safe) - v * np.exp(-v)) / safe**2, series)


def line_tensors(r, value, xi, length):
    """Return ∂ᵢ∂ⱼB and ∂ᵢ∂ⱼ∂ₖB of a line of sources; `value` is its A."""
    first, second = line_moments(xi**2 * (r[1] ** 2 + r[2] ** 2))
    across = np.diag([0.0, 1.0, 1.0])[:, :, None, None]
    two = across * (value - 1 / length) - 2 * xi**2 / length * first * r[:, None] * r
    mixed = across[:, :, None] * r + across[:, None] * r[:, None]
    mixed = mixed + np.moveaxis(across[:, :, None] * r, (0, 1, 2), (1, 2, 0))
    three = -2 * xi**2 * first * mixed + 4 * xi**4 * second * r[:, None, None] * r[:, None] * r
    return two, three / length
