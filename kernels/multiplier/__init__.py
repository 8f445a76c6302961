"""Multipliers of one Fourier mode, one file per kernel: the `multiplier` slot of the convolution.

Complex numbers are pairs (re, im): NIN of them in v, NOUT in w.  (nx, ny, nz) = k/|k|, which is (0, 0, 1) at k = 0;
g = the scalar part of the multiplier with all factors, real.
"""
