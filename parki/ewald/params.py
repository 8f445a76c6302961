from dataclasses import dataclass


@dataclass(frozen=True)
class Parameters:
    kernel: str
    box: tuple[float, float, float]
    tolerance: float
    dtype: str
    split: str
    rc: float
    c: float
    kmax: float
    xi: float
    grid: tuple[int, int, int]
    h: tuple[float, float, float]
    P: int
    beta: float
    window_degree: int
    radial_degree: int
