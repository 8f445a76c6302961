"""Split of a kernel into a near and a far field: profiles, spectra, windows and error layers."""
