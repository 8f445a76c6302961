"""Names that the public calls take, as types: type checkers report misspelt ones.

Canonical spellings are listed; calls take others, as ``"openmp"``, at run time alone.
"""

from typing import Literal

KernelName = Literal[
    "laplace", "laplace_grad", "laplace_dipole", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
    "stokes_grad", "stokes_dipole", "yukawa", "regularised_coulomb", "spline_coulomb", "regularised_yukawa",
    "oscillatory", "gaussian", "multiquadric", "inverse_quadratic", "biharmonic", "thin_plate", "rotlet",
    "regularised_stokeslet", "regularised_dipole", "rpy", "rpy_rotation", "coulomb", "stokeslet", "stresslet",
]  # fmt: skip
EwaldKernelName = Literal[
    "laplace", "laplace_grad", "laplace_dipole", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
    "stokes_grad", "stokes_dipole", "yukawa", "rotlet", "regularised_stokeslet", "regularised_dipole", "rpy",
    "rpy_rotation",
]  # fmt: skip
TreecodeMethod = Literal["dual", "pc", "cp"]
TreecodeVariant = Literal["pc", "cp"]
FmmMethod = Literal["kifmm", "chebyshev"]
SumMethod = Literal["auto", "direct", "bldtt", "bltc", "kifmm", "chebyshev", "ewald"]
TaskSchedule = Literal[
    "phases", "drain", "fifo", "starpu", "starpu:dm", "starpu:dmda", "starpu:dmdap", "starpu:dmdar", "starpu:dmdas",
    "starpu:dmdasd", "starpu:eager", "starpu:heteroprio", "starpu:lws", "starpu:prio", "starpu:random", "starpu:ws",
]  # fmt: skip
FmmSchedule = Literal["auto", "heteroprio", "heft", "static", TaskSchedule]
Gradient = bool | Literal["only"]
Layout = Literal["dn", "nd"]
Precision = Literal["double", "single"]
ExchangeBits = Literal[64, 40, 32]
SpaceName = Literal["Serial", "OpenMP", "Cuda", "HIP", "GpuSim", "GpuSim64", "CPU", "host", "GPU"]
EngineName = Literal["parki", "pykokkos"]
TransformLibrary = Literal["scipy", "ducc0", "pyfftw", "torch", "cupy"]
TransformKind = Literal["AUTO", "R2C", "C2C"]
SplitName = Literal["prolate", "gaussian"]
P2PMethod = Literal["AUTO", "LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D"]
P2GMethod = Literal["AUTO", "BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE"]
G2PMethod = Literal["AUTO", "BASE", "TARGET", "TILE"]
DtypeName = Literal["fp32", "float32", "fp64", "float64"]
