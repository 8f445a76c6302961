"""Files of all kernels, in free space and with one periodic direction."""

import csv

import numpy as np
import pytest

import parki
from parki import cli, formats

BOX = (1.0, 1.5, 2.0)


def write_csv(path, names, table):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([[repr(float(value)) for value in row] for row in table])


OTHER = {
    "yukawa": ("x y z q", ["--kappa", "2.5"]),
    "laplace_dipole": ("x y z dx dy dz", []),
    "stokes_dl": ("x y z qx qy qz nx ny nz", []),
    "stokes_grad": ("x y z fx fy fz", []),
    "regularised_dipole": ("x y z dx dy dz", ["--parameter", "epsilon=0.5"]),
    "stokes_dipole": ("x y z dxx dxy dxz dyx dyy dyz dzx dzy dzz", []),
}


@pytest.mark.parametrize("kernel", OTHER)
def test_other_kernels_in_free_space_need_no_box(kernel, tmp_path, rng):
    names, more = OTHER[kernel]
    table = rng.standard_normal((12, len(names.split())))
    write_csv(tmp_path / "in.csv", names.split(), table)
    command = ["run", str(tmp_path / "in.csv"), "--kernel", kernel, "--periodicity", "0", *more]
    assert cli.main([*command, "--tolerance", "1e-6", "-o", str(tmp_path / "out.csv")]) == 0
    x, dens, *normals = np.split(table.T, range(3, 9, 3)[: 1 + (kernel == "stokes_dl")])
    dens = dens[0] if kernel == "yukawa" else dens
    parameters = {"yukawa": {"kappa": 2.5}, "regularised_dipole": {"epsilon": 0.5}}.get(kernel, {})
    exact = parki.direct.direct_sum(kernel, x, x, dens, *normals, **parameters)
    found = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1).T
    np.testing.assert_allclose(found[:3], x)
    np.testing.assert_allclose(found[3:].squeeze(), exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header.endswith({1: "z,potential", 3: "ux,uy,uz", 9: "uzx,uzy,uzz"}[1 if exact.ndim == 1 else len(exact)])


def test_one_periodic_direction(tmp_path, rng):
    table = np.hstack([rng.random((12, 3)) * BOX, rng.standard_normal((12, 3))])
    np.save(tmp_path / "in.npy", table)
    command = ["run", str(tmp_path / "in.npy"), "--kernel", "stokes_sl", "--periodicity", "1", "--tolerance", "1e-4"]
    more = ["--box", *map(str, BOX), "--space", "Serial"]
    assert cli.main([*command, *more, "-o", str(tmp_path / "out.npy")]) == 0
    x, f = table.T[:3], table.T[3:]
    options = {"box": BOX, "periodicity": 1, "tolerance": 1e-4, "execution_space": "Serial"}
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), parki.ewald.stokes_sl(x, x, f, **options))


def test_matrices_in_vtu(tmp_path, rng):
    pytest.importorskip("pyevtk")
    potential, trg = rng.standard_normal((9, 5)), rng.random((3, 5))
    formats.save(tmp_path / "out.vtu", {"potential": potential}, trg, {})
    assert b'Name="uzy"' in (tmp_path / "out.vtu").read_bytes()
