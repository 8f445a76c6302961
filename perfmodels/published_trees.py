"""Published scaling of treecodes and fast multipole methods, and parki's models of the same sums beside it."""

from __future__ import annotations

