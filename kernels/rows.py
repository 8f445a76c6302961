"""Rows of sources: points, charges and constants in the order of a tree; coincident sources merged to one.

A row is (x, y, z, NC charges, NP constants).  A crowd, sources at one point, is summed in pieces, and the sums of its
pieces pairwise.
"""

from typing import List

import pykokkos as pk

real = pk.double
NC = 1  # charges of a source
NP = 0  # parameters of a source that are the same for all sources
SUMS = 8  # partial sums of a piece, 1, 2, 4 or 8; a piece has at least SUMS sources


@pk.workunit
def source_rows(j: int, x: pk.View2D[real], charge: pk.View2D[real], constant: pk.View1D[real],
                order: pk.View1D[pk.int32], src: pk.View2D[real]):  # fmt: skip
    """Make row j from source order[j]; x is sorted already."""
    i: int = order[j]
    for d in range(3):
        src[j][d] = x[d][j]
    for n in range(NC):
        src[j][3 + n] = charge[n][i]
    for n in range(NP):
        src[j][3 + NC + n] = constant[n]


@pk.workunit
def crowd_sums(b: int, piece: pk.View2D[pk.int32], src: pk.View2D[real], part: pk.View2D[real]):
    """Set part[b][n] to the sum of charge n of sources piece[b][0] … piece[b][1] - 1."""
    first: int = piece[b][0]
    end: int = piece[b][1]
    whole: int = end - (end - first) % SUMS
    for n in range(NC):
        total: List[real] = [0.0] * SUMS
        for i in range(SUMS):
            total[i] = src[first + i][3 + n]
        for e in range(first + SUMS, whole, SUMS):
            for i in range(SUMS):
                total[i] += src[e + i][3 + n]
        for i in range(SUMS // 2):
            total[i] = total[2 * i] + total[2 * i + 1]
        for i in range(SUMS // 4):
            total[i] = total[2 * i] + total[2 * i + 1]
        for i in range(SUMS // 8):
            total[i] = total[2 * i] + total[2 * i + 1]
        v: real = total[0]
        for e in range(whole, end):
            v += src[e][3 + n]
        part[b][n] = v


@pk.workunit
def crowd_rows(k: int, crowd: pk.View2D[pk.int32], piece: pk.View2D[pk.int32], part: pk.View2D[real],
               src: pk.View2D[real], place: int):  # fmt: skip
    """Make row place + k from crowd k: its first source, and the sums of pieces crowd[k][1] … crowd[k][2] - 1.

    Sums of pieces are on a stack in `part`; after piece b its top two are added, piece[b][2] times.
    """
    source: int = crowd[k][0]
    begin: int = crowd[k][1]
    end: int = crowd[k][2]
    for d in range(3 + NC + NP):
        src[place + k][d] = src[source][d]
    for n in range(NC):
        top: int = begin
        for b in range(begin, end):
            v: real = part[b][n]
            merges: int = piece[b][2]
            for _m in range(merges):
                top -= 1
                v = part[top][n] + v
            part[top][n] = v
            top += 1
        src[place + k][3 + n] = part[begin][n]
