"""Small workunits for the tests of launches."""

KERNELS = '''import pykokkos as pk
real = pk.double


@pk.workunit
def scale(i: int, x: pk.View2D[real], y: pk.View2D[real], a: real, n: int, flag: bool):
    """y = a x, or 2 a x."""
    for j in range(n):
        b: real = a
        if flag:
            b = 2.0 * a
        y[i][j] = b * x[i][j]


@pk.workunit
def counted(i: int, x: pk.View1D[real], k: pk.View1D[pk.int32], w: pk.View1D[pk.int64], b: pk.View1D[pk.uint8],
            n: pk.int64):
    x[i] += real(k[i]) + real(b[i])
    w[i] += n


@pk.workunit
def total(i: int, acc: pk.Acc[real], x: pk.View1D[real]):
    acc += x[i]


@pk.workunit
def total_int(i: int, acc: pk.Acc[pk.int64], k: pk.View1D[pk.int32]):
    acc += k[i]


@pk.workunit
def running(i: int, acc: pk.Acc[real], last: bool, x: pk.View1D[real], y: pk.View1D[real]):
    acc += x[i]
    if last:
        y[i] = acc


@pk.workunit(scratch=[(real, lambda p: p.asked), (pk.int32, lambda p: 2 * p.asked + 1)])
def reversed_by_scratch(team: pk.TeamMember, x: pk.View2D[real], n: int, asked: int):
    """Reverses each row."""
    r: int = team.league_rank()
    s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), n)
    at: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), n)

    def fill(t: int):
        s[t] = x[r][t]
        at[t] = n - 1 - t

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    team.team_barrier()

    def drain(t: int):
        x[r][t] = s[at[t]]

    pk.parallel_for(pk.TeamThreadRange(team, n), drain)


@pk.workunit
def nothing(team: pk.TeamMember, n: int):
    m: int = n + team.league_rank()


@pk.workunit
def named(i: int, policy: pk.View1D[real], workunit: pk.View1D[real]):
    policy[i] = workunit[i]
'''
