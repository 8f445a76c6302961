"""A user's script with ten mistakes, each on a line that says so.  Never run."""

import parki

x, q = parki.samples.uniform(200), parki.samples.charges(200)

parki.treecode.bldtt(x, x, q, toleranc=1e-6)  # wrong: a misspelt option
parki.treecode.bltc(x, x, q, degree="eight")  # wrong: text where a number is expected
parki.direct.direct_sum("colomb", x, x, q)  # wrong: an unknown kernel
parki.fmm.kifmm(x, x, q, theta=0.5)  # wrong: an option of treecodes
plan = parki.ewald.plan("laplace", x, x, box=(2, 2, 2), tolerance=1e-6)
plan.mvoe(x)  # wrong: a misspelt method
parki.treecode.plan("coulomb", x, x, gradient="yes")  # wrong: neither a bool nor "only"
parki.fmm.chebyshev(x, x, q, layout="dm")  # wrong: an unknown layout
parki.ewald.laplace(x, x, q, box=(2, 2, 2), tolerance="1e-6")  # wrong: a number as text
results: tuple[object, object] = parki.treecode.bldtt(x, x, q)  # wrong: two results, where there is one array
parki.ewald.plan("stokes_sl", x, x, periodicity=0, execution_space="OpenMPI")  # wrong: an unknown space
