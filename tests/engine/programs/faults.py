"""L0 texts with one fault each, and the code with which the checker must reject each text."""

from tests.engine.programs.program import indent, write

FAULTS: list[tuple[str, str]] = []

VIEWS = "x: pk.View1D[pk.double], m: pk.View2D[pk.double], k: pk.View1D[pk.int32]"
SCRATCH = "s: pk.ScratchView1D[pk.double] = pk.ScratchView1D(team.team_scratch(0), 8)"
FILL = ["def fill(t: int):", "    s[t] = 1.0", "pk.parallel_for(pk.TeamThreadRange(team, 8), fill)"]
DRAIN = ["def drain(t: int):", "    x[t] = s[7 - t]", "pk.parallel_for(pk.TeamThreadRange(team, 8), drain)"]
BARRIER = "team.team_barrier()"


def over(
    code: str, *lines: str, extra: str = "n: int, a: pk.double, flag: bool", functions: tuple[str, ...] = ()
) -> None:
    """Add a fault in the body of a range policy over `i`."""
    FAULTS.append((code, write(f"i: int, {VIEWS}, {extra}", lines, functions)))


def team_text(*lines: str, extra: str = "n: int, a: pk.double", scratch: str = "(float, lambda p: 8)") -> str:
    """Return a text with a team policy."""
    return write(f"team: pk.TeamMember, {VIEWS}, {extra}", lines, scratch=scratch)


def team(code: str, *lines: str, **options: str) -> None:
    """Add a fault in the body of a team policy."""
    FAULTS.append((code, team_text(*lines, **options)))


def function(code: str, lines: str, call: str = "f(a)") -> None:
    """Add a fault in a function."""
    over(code, f"x[i] = {call}", functions=("@pk.function", lines))


# K001: outside the grammar
for line in (
    "x[i] = 1.0 if flag else 2.0",
    "flag2: bool = 0 < i < n",
    "x[i], m[0][i] = a, a",
    "x[i] = a ** 2",
    "x[i] = abs(a)",
    "x[i] = max(a, 1.0)",
    "x[i] = pk.cbrt(a)",
    "x[i] = m[i, :][0] if flag else a",
    "k[i] = len(x)",
    "k[i] = x.shape[0]",
    "k[i] //= 2",
    "assert i < n",
    "print(i)",
    "i + n",
    "a",
    "break",
    "return a",
    "x[i] = math.inf",
    "x[i] = lambda: a",
    "x[i] = m[i][0] = a",
    "x[i] = f'{i}'",
    "flag2: bool = i in (1, 2)",
    "b: List[pk.double] = [0.0] * 4",
    "pk.printf('%d', i)",
    "pk.atomic_increment(k, [i])",
    "for v in (1, 2): x[i] = a",
    "with a: x[i] = a",
):
    over("K001", line)
team("K001", "r: int = team.team_rank()")
team("K001", "def f(t: int, u: int):", "    x[t] = a", "pk.parallel_for(pk.TeamThreadMDRange(team, 2, 2), f)")
FAULTS.append(("K001", write("i: int, x: pk.View1D[pk.real]", ["x[i] = 1.0"])))
FAULTS.append(("K001", write("i: int, x: pk.View5D[pk.double]", ["x[i][0][0][0][0] = 1.0"])))
FAULTS.append(("K001", write("i: pk.int64, x: pk.View1D[pk.double]", ["x[i] = 1.0"])))
FAULTS.append(("K001", write("i: int, x: pk.View1D[pk.double]", ["x[i] = C"], ("C = 2.0",))))

# K002: declarations
FAULTS.append(("K002", write("i: int, x", ["x[i] = 1.0"])))
over("K002", "b = a", "x[i] = b")
over("K002", "b: pk.double", "x[i] = a")
over("K002", "b: pk.double = a", "b: pk.double = 2.0", "x[i] = b")
over("K002", "if flag:", "    b: pk.double = a", "x[i] = b")
over("K002", "x[i] = b", "b: pk.double = a", "x[i] += b")
# inner bodies that read a name that is declared below, before their use or after their use
EARLY = ["def early(t: int):", "    x[t] = later"]
team("K002", *EARLY, "later: pk.double = a", "pk.parallel_for(pk.TeamThreadRange(team, n), early)")
team("K002", *EARLY, "pk.parallel_for(pk.TeamThreadRange(team, n), early)", "later: pk.double = a")
function("K002", "def f(v) -> pk.double:\n    return v")

# K003: names
over("K003", "x[i] = unknown")
over("K003", "x[i] = unknown(a)")
over("K003", "new: pk.double = a", "x[i] = new")
over("K003", "pkx: pk.double = a", "x[i] = pkx")
over("K003", "if flag:", "    b: pk.double = a", "else:", "    b: int = n")
over("K003", "for j in range(3):", "    for j in range(2):", "        x[i] += a")
function("K003", "def f(v: pk.double) -> pk.double:\n    return v + a")
function("K003", "def exp(v: pk.double) -> pk.double:\n    return v + 1.0", "exp(a)")
team("K003", "b: int = n", "def f(b: int):", "    x[b] = a", "pk.parallel_for(pk.TeamThreadRange(team, n), f)")

# K004: types
for line in (
    "x[i] = a + i",
    "x[i] = n",
    "x[i] = 1",
    "k[i] = 1.0",
    "k[i] = a",
    "x[i] = pk.sqrt(n)",
    "x[i] = pk.fmin(a)",
    "x[i] = pk.pow(a, 2)",
    "k[i] = n / 2",
    "k[i] /= 2",
    "x[i] = a // 2.0",
    "x[i] = a % 2.0",
    "x[i] = a & a",
    "k[i] = n << a",
    "x[i] = float(n)",
    "b: float = a",
    "k[i] = int(n)",
    "k[i] = n + flag",
    "k[i] = -flag",
    "x[i] = a * pk.float(a)",
    "flag2: bool = a < i",
    "b: pk.float = a",
    "r: pk.int64 = pk.atomic_fetch_add(k, [i], 1)",
    "pk.atomic_add(k, [i], 1.0)",
):
    over("K004", line)
over("K004", "k[i] = int(a) + big", extra="a: pk.double, big: pk.int64")
over("K004", "b: pk.int64 = big // 2", extra="big: pk.int64")
function("K004", "def f(v: pk.double) -> pk.double:\n    return 1")
function("K004", "def f(v: pk.double) -> pk.double:\n    return v", "f(i)")
function("K004", "def f(v: pk.double) -> pk.double:\n    return v", "f(a, a)")

# K005: certainly negative operands
for line in ("k[i] = -3 % n", "k[i] = -7 // 2", "k[i] = n % -3", "k[i] = (-n) // 2", "k[i] = -n >> 1"):
    over("K005", line)

# K006: conditions
over("K006", "if (i < 1 or i > 3) and n > 0:", "    x[i] = a")
over("K006", "if (i < 1 or flag) == flag:", "    x[i] = a")
over("K006", "if n:", "    x[i] = a")
over("K006", "k[i] = n and 3")
over("K006", "while n or flag:", "    x[i] = a")
over("K006", "if not n:", "    x[i] = a")

# K007: loops
over("K007", "b: int = n", "for j in range(b):", "    b = 2")
over("K007", "for j in range(k[i]):", "    x[i] += a")
over("K007", "for j in range(n):", "    j = 2")
over("K007", "for j in range(0, n, n):", "    x[i] += a")
over("K007", "for j in range(0, n, 0):", "    x[i] += a")
over("K007", "for j in range(n):", "    x[i] += a", "else:", "    x[i] = a")
over("K007", "while flag:", "    break", "else:", "    x[i] = a")
over("K007", "i = 2")

# K008: keyword arguments, defaults
over("K008", "x[i] = pk.fmax(a, y=1.0)")
function("K008", "def f(v: pk.double) -> pk.double:\n    return v", "f(v=a)")
function("K008", "def f(v: pk.double = 1.0) -> pk.double:\n    return v")
FAULTS.append(("K008", write("i: int, *, x: pk.View1D[pk.double]", ["x[i] = 1.0"])))
FAULTS.append(("K008", write("i: int, x: pk.View1D[pk.double], n: int = 2", ["x[i] = 1.0"])))
FAULTS.append(("K008", write("i: int, x: pk.View1D[pk.double], *rest", ["x[i] = 1.0"])))
team("K008", "def f(t: int):", "    x[t] = a", "pk.parallel_for(pk.TeamThreadRange(team, n), f, scale=2.0)")

# K010: indices
for line in (
    "x[i] = m[i][0][0]",
    "x[i] = m[i]",
    "x[i] = m[i, 0]",
    "x[i] = x[-1]",
    "x[i] = m[0][-1]",
    "x[i] = x[a]",
    "x[i][0] = a",
    "m[i, 0] = a",
    "x[i] = m",
    "x[i] = a[0]",
    "k[i] = x.extent(1)",
    "pk.atomic_add(m, [i], a)",
):
    over("K010", line)

# K011: read-only names and views
over("K011", "n = n - 1")
over("K011", "a += 1.0")
over("K011", "b: List[pk.double] = [1.0, 2.0]", "b[0] = a")
OUTER = ["b: pk.double = a", "def f(t: int):", "    b = 2.0", "    x[t] = b"]
team("K011", *OUTER, "pk.parallel_for(pk.TeamThreadRange(team, n), f)")
team("K011", "def f(n: int):", "    x[n] = a", "pk.parallel_for(pk.TeamThreadRange(team, 4), f)")
team("K011", "def f(t: int):", "    x: pk.double = a", "pk.parallel_for(pk.TeamThreadRange(team, 4), f)")

# K012: inner defs
BODY = ["def f(t: int):", "    x[t] = a"]
team("K012", "pk.parallel_for(pk.TeamThreadRange(team, n), f)", *BODY)
team("K012", *BODY)
team("K012", *BODY, "def g(u: int):", "    pk.parallel_for(pk.ThreadVectorRange(team, n), f)",
     "pk.parallel_for(pk.TeamThreadRange(team, 1), f)", BARRIER,
     "pk.parallel_for(pk.TeamThreadRange(team, 1), g)")  # fmt: skip

team("K012", SCRATCH, *FILL, BARRIER, *DRAIN, "c: pk.double = pk.parallel_reduce(pk.TeamThreadRange(team, n), drain)")

# K013: levels
team("K013", *BODY, "pk.parallel_for(pk.ThreadVectorRange(team, n), f)")
NESTED = ["def g(u: int):", *indent(BODY), "    pk.parallel_for(pk.TeamThreadRange(team, n), f)"]
team("K013", *NESTED, "pk.parallel_for(pk.TeamThreadRange(team, n), g)")
team("K013", *BODY[:1], "    team.team_barrier()", *BODY[1:], "pk.parallel_for(pk.TeamThreadRange(team, n), f)")
SINGLE = ["def once():", "    x[0] = a"]
team("K013", *SINGLE, "pk.single(pk.PerThread(team), once)")
team("K013", "def g(u: int):", *indent(SINGLE), "    pk.single(pk.PerTeam(team), once)",
     "pk.parallel_for(pk.TeamThreadRange(team, n), g)")  # fmt: skip
team("K013", *SINGLE[:1], "    team.team_barrier()", "pk.single(pk.PerTeam(team), once)")

# K014: stores by all threads
team("K014", "x[0] = a")
team("K014", "if n > 2:", "    pk.atomic_add(x, [0], a)")
team("K014", "for j in range(n):", "    r: int = pk.atomic_fetch_add(k, [0], 1)")
SUM = ["def part(v: int, acc: pk.Acc[pk.double]):", "    acc += m[0][v]"]
REDUCE = "b: pk.double = pk.parallel_reduce(pk.ThreadVectorRange(team, n), part)"
ROW = ["def row(t: int):", *indent([*SUM, REDUCE])]
team("K014", *ROW, "    x[t] = b", "pk.parallel_for(pk.TeamThreadRange(team, n), row)")

# K015: accumulators
REDUCING = f"i: int, acc: pk.Acc[pk.double], {VIEWS}, a: pk.double"
FAULTS += [("K015", write(REDUCING, [x])) for x in ("acc -= a", "acc = a", "if a > acc: acc += a", "x[i] = acc")]
FAULTS.append(("K015", write("i: int, acc: pk.Acc[bool], n: int", ["acc += n > 1"])))
TOTAL = "pk.parallel_reduce(pk.TeamThreadRange(team, n), part"
team("K015", *SUM, f"b: pk.float = {TOTAL})")
team("K015", *SUM, f"{TOTAL})")
team("K015", *SUM, f"b: pk.double = {TOTAL}, 0.0)")
team("K015", "def part(v: int):", "    c: pk.double = a", f"b: pk.double = {TOTAL})")
team("K015", "def part(v: int, acc: pk.Acc[pk.double]):", "    acc *= a", f"b: pk.double = {TOTAL})")

# K016: barriers
team("K016", SCRATCH, *FILL, *DRAIN)
team("K016", SCRATCH, *FILL, "if n > 2:", f"    {BARRIER}", *DRAIN)
team("K016", SCRATCH, "for r in range(2):", *indent([*FILL, BARRIER, *DRAIN]))
team("K016", SCRATCH, *FILL, "b: pk.double = s[0]", "def put():", "    x[0] = b", "pk.single(pk.PerTeam(team), put)")
team("K016", SCRATCH, *FILL, "def put():", "    x[0] = s[0]", "pk.single(pk.PerTeam(team), put)")
team("K016", SCRATCH, *FILL, "def part(v: int, acc: pk.Acc[pk.double]):", "    acc += s[v]", f"b: pk.double = {TOTAL})")
team("K016", SCRATCH, *FILL, BARRIER, *DRAIN, "def put():", "    s[0] = 2.0", "pk.single(pk.PerTeam(team), put)")
# the barrier is not on every path: the loop may run zero times, or be left before the barrier
team("K016", SCRATCH, *FILL, "for r in range(n):", f"    {BARRIER}", *DRAIN)
team("K016", SCRATCH, *FILL, "for r in range(2):", "    if n > 2:", "        break", f"    {BARRIER}", *DRAIN)
team("K016", SCRATCH, "for r in range(2):", *indent([*FILL, BARRIER, *DRAIN]), "    if n > 2:", "        continue",
     f"    {BARRIER}")  # fmt: skip
team("K016", SCRATCH, *FILL, "r: int = 0", "while r < n:", f"    {BARRIER}", "    r += 1", *DRAIN)
team("K016", SCRATCH, *FILL, "if n > 2:", f"    {BARRIER}", "elif n > 1:", "    c: int = 2", "else:",
     f"    {BARRIER}", *DRAIN)  # fmt: skip
team("K016", SCRATCH, *FILL, "for r in range(2):", "    for q in range(2):", "        if n > 2:", "            break",
     f"        {BARRIER}", *DRAIN)  # fmt: skip
# the second turn meets the end of the first
AGAIN = [line.replace("fill", "refill") for line in FILL]
team("K016", SCRATCH, *FILL, BARRIER, "for r in range(n):", *indent([*DRAIN, BARRIER, *AGAIN]))

# K017: one element, all lanes
over("K017", "x[0] = a")
over("K017", "m[n][0] += a")
over("K017", "b: int = i - i", "x[b] = a")
over("K017", "for j in range(4):", "    x[j] = a")
team("K017", "def f(t: int):", "    x[0] = a", "pk.parallel_for(pk.TeamThreadRange(team, n), f)")
team("K017", "def g(t: int):", "    def f(v: int):", "        x[t] = a",
     "    pk.parallel_for(pk.ThreadVectorRange(team, n), f)",
     "pk.parallel_for(pk.TeamThreadRange(team, n), g)")  # fmt: skip

# K018: scratch
USE = [*FILL, BARRIER, *DRAIN]
team("K018", SCRATCH, *USE, scratch="")
team("K018", "for r in range(1):", *indent([SCRATCH, *USE]))
team("K018", SCRATCH.replace("1D", "2D").replace(", 8)", ", 8, 1)"), BARRIER)
team("K018", SCRATCH.replace("scratch(0)", "scratch(1)"), *USE)
team("K018", SCRATCH, *USE, extra="team_size: int, a: pk.double")
team("K018", SCRATCH, SCRATCH.replace("s:", "s2:"), *USE)
# sizes are integer arithmetic
for entry in (
    "(float, lambda p: 8.0)",
    "(float, lambda p: p.n ** 2)",
    "(float, lambda p: p.a)",
    "(float, lambda p: p.team_size)",
    "(float, lambda p: q.n)",
    "(float, lambda p: __import__('os').getpid())",
    "(float, lambda p: p.n.real)",
    "(bool, lambda p: 8)",
    "8",
):
    team("K018", SCRATCH, *USE, scratch=entry)

# K019: scans
SCAN = "def f(j: int, acc: pk.Acc[pk.int32], last: bool):"
SCANNED = "b: pk.int32 = pk.parallel_scan(pk.TeamThreadRange(team, n), f)"
team("K019", SCAN, "    x[j] = a", "    acc += k[j]", SCANNED)
team("K019", SCAN, "    acc += k[j]", "    if last or j > 2:", "        x[j] = a", SCANNED)
team("K019", SCAN, "    pk.atomic_add(x, [0], a)", "    acc += k[j]", SCANNED)
team("K019", "def g(t: int):",
     *indent([SCAN, "    x[j] = a", "    acc += k[j]", SCANNED.replace("TeamThread", "ThreadVector")]),
     "pk.parallel_for(pk.TeamThreadRange(team, n), g)")  # fmt: skip
FAULTS.append(("K019", write(f"i: int, acc: pk.Acc[pk.int32], last: bool, {VIEWS}", ["k[i] = 2", "acc += 1"])))

# K020: functions
function("K020", "def f(v: pk.View1D[pk.double]) -> pk.double:\n    return v[0]", "f(x)")
function("K020", "def f(v: pk.double) -> pk.double:\n    if v > 0.0:\n        return v\n    return 1.0")
function("K020", "def f(v: pk.double) -> pk.double:\n    w: pk.double = v", "f(a)")
function("K020", "def f(v: pk.double) -> pk.double:\n    return f(v)")
function("K020", "def f(v: pk.double) -> pk.double:\n    pk.atomic_add(x, [0], v)\n    return v")
