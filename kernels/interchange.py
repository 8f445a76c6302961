"""Compressed values of boxes on their way from sources to targets, by places in lists of translations.

A box below an octet q has the place 8 q + octant.  Of translation j a target takes the columns from column[j] up to
column[j + 1] of the box of octet near[q][way[octant][j][0]] with octant way[octant][j][1].
"""

import pykokkos as pk

real = pk.double


@pk.workunit
def collect(
    team: pk.TeamMember, target: pk.View1D[pk.int32], near: pk.View2D[pk.int32], way: pk.View3D[pk.int32],
    row: pk.View1D[pk.int32], column: pk.View1D[pk.int32], first: int, count: int, given: pk.View2D[real],
    made: pk.View2D[real],
):  # fmt: skip
    """made[b] = values of the sources of place target[b] for translations first … first + count - 1, 0 where none is.

    given[row[place]] are the values of a source; row is -1 where there is none.
    """
    b: int = team.league_rank()
    octet: int = target[b] // 8
    octant: int = target[b] % 8
    base: int = column[first]

    def take(j: int):
        q: int = near[octet][way[octant][first + j][0]]
        s: int = -1
        if q >= 0:
            s = row[8 * q + way[octant][first + j][1]]
        begin: int = column[first + j] - base
        end: int = column[first + j + 1] - base
        if s >= 0:

            def copy(c: int):
                made[b][begin + c] = given[s][begin + c]

            pk.parallel_for(pk.ThreadVectorRange(team, end - begin), copy)
        else:

            def clear(c: int):
                made[b][begin + c] = 0.0

            pk.parallel_for(pk.ThreadVectorRange(team, end - begin), clear)

    pk.parallel_for(pk.TeamThreadRange(team, count), take)
