"""Programs for cases that generated ones do not reach."""

import numpy as np

from tests.engine.programs.program import Program, parameter, write


def by_hand(lines, league, *functions, policy="range", **args):
    """Return a program whose first array argument is the output; a range policy runs over i."""
    first = {"range": "i: int", "team": "team: pk.TeamMember"}[policy]
    text = write(", ".join([first, *map(parameter, args, args.values())]), lines, functions)
    return Program(text, policy, league, args, (next(iter(args)),))


LOOKUP = """@pk.function
def look(k: int) -> pk.double:
    table: List[pk.double] = [1.0, 2.0, 4.0]
    s: pk.double = table[k]
    for n in range(k):
        s += table[n]
    while s < 3.0:
        s = s * 2.0
    return s
"""
BY_HAND = {
    "a function under a mask is not given what the other lanes hold": by_hand(
        ["if i == 8:", "    x[i] = look((i - 8) * 100000000)", "else:", "    x[i] = look(k[i])"],
        19, LOOKUP, x=np.zeros(19), k=np.zeros(19, np.int32),
    ),
    "a diagonal is not contiguous": by_hand(["x[i] = m[i][i]"], 9, x=np.zeros(9), m=np.arange(81.0).reshape(9, 9)),
    "a uniform condition as a mask": by_hand(
        ["ok: bool = flag", "if i > 3:", "    ok = not ok", "x[i] = 1.0", "if not ok:", "    x[i] = 2.0"],
        11, x=np.zeros(11), flag=True,
    ),
    "one loop name, with uniform and with varying bounds": by_hand(
        ["for j in range(n):", "    x[i] += m[j]", "c: int = k[i]",
         "for j in range(c):", "    x[i] += m[j] * 100.0", "for j in range(4):", "    x[i] += m[j] * 10000.0"],
        13, x=np.zeros(13), m=np.arange(8.0), k=np.arange(13, dtype=np.int32) % 5, n=3,
    ),
    "the smallest integers": by_hand(
        ["x[i] = -2147483648 + i", "y[i] = -9223372036854775808 + i"],
        9, x=np.zeros(9, np.int32), y=np.zeros(9, np.int64),
    ),
    "a float literal is rounded twice, as everywhere": by_hand(
        ["x[i] = 1.00000017881393421514957253748434595763683319091796875", "y[i] = pk.float(i) * 1e300"],
        9, x=np.zeros(9, np.float32), y=np.zeros(9, np.float32),
    ),
    "a return in a uniform loop, where others return one by one": by_hand(
        ["if i == 2:", "    return", "c: int = 0", "while c < n:", "    x[i] += 1.0", "    if n > 3:", "        return",
         "    c += 1", "x[i] = 9.0"],
        9, x=np.zeros(9), n=5,
    ),
    "names of strides, extents, macros": by_hand(
        ["m_s0: int = 2", "m_n0: int = 3", "W: int = 4", "N: int = m.extent(0)",
         "x[i] = pk.double(m_s0 * m_n0 * W * N) + m[i][1]"],
        9, x=np.zeros(9), m=np.arange(18.0).reshape(9, 2),
    ),
    "a loop from above to below, whose index varies": by_hand(
        ["c: int = k[i]", "for j in range(c, -1, -2):", "    if j == 3:", "        continue", "    if j == 0:",
         "        break", "    x[i] += m[j]"],
        15, x=np.zeros(15), m=np.arange(9.0) + 1, k=np.arange(15, dtype=np.int32) % 9,
    ),
}  # fmt: skip

#: Program whose lanes return one by one from the body of `pk.single`, and go on after the call.
SINGLES = by_hand(
    ["def body(t: int):",
     "    def once():",
     "        for j in range(4):",
     "            if k[t] == j:",
     "                return",
     "            x[t] += 1.0",
     "        x[t] += 10.0",
     "    pk.single(pk.PerThread(team), once)",
     "    x[t] += 100.0",
     "pk.parallel_for(pk.TeamThreadRange(team, n), body)"],
    1, policy="team", x=np.zeros(21), k=np.arange(21, dtype=np.int32) % 6, n=21,
)  # fmt: skip
