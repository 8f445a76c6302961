"""Spellings of GPUs: scalar code of one thread, in the macros of `pk_gpu.h`, for CUDA, HIP and the simulator."""

from parki.engine.lower import spellings
from parki.engine.lower.printer import Printer, SpellingTable
from parki.engine.tree import ir, lanes, threads

# Phases of a scan over the league: `COUNT` leaves each block's sum, `FINISH` reads the sum before the block.
COUNT, FINISH = 0, 1
RANKS = {"lane": "PK_LANE", "thread": "PK_THREAD", "row": "PK_TEAM_RANK"}
COUNTS = {"lane": "PK_LANES", "thread": "PK_THREADS", "row": "PK_TEAM_SIZE"}


def offset(printer: Printer, node: ir.Load | threads.LoadTwoAt) -> str:
    """Return the offset of an element, as narrow as the views allow (``pk_index``)."""
    parts = []
    for e, stride in zip(node.indices, printer.strides(node.view), strict=True):
        if not (isinstance(e, ir.Const) and e.value == 0):
            parts.append(f"(pk_index){printer.text(e)}{'' if stride == '1' else f' * {stride}'}")
    return " + ".join(parts) or "0"


def closure(s: threads.Closure) -> str:
    """Return the template of code that may return."""
    parameter = f"const int32_t {s.index}" if s.index else ""
    return f"[&]({parameter}) {{\n$body\n}}({s.value});"


SCAN_PARAMETERS = "[[maybe_unused]] const int32_t $index, $acc_ctype& $acc, [[maybe_unused]] const bool $last"
SCAN_BODY = f"auto $body_name = [&]({SCAN_PARAMETERS}) {{\n$body\n}};\n"
SCAN = f"""$acc_ctype $result; {{ $acc_ctype $carry = 0; const int32_t $stop = $end;
for (int32_t $first = $begin; $first < $stop; $first += PK_THREADS) {{
{SCAN_BODY}const int32_t pk_at = $first + PK_THREAD; $acc_ctype pk_mine = 0, $total;
if (pk_at < $stop) $body_name(pk_at, pk_mine, false);
$acc_ctype pk_before = $carry + pk_team_scan(pk_mine, $total, $site);
if (pk_at < $stop) $body_name(pk_at, pk_before, true);
$carry += $total; }} $result = $carry; }}"""

# Lanes beyond the end compute the first lane's term, which does not count: a compiler then computes terms once.
ROW_SCAN = f"""$acc_ctype $result; {{ $acc_ctype $carry = 0; const int32_t $stop = $end;
for (int32_t $first = $begin; $first < $stop; $first += PK_LANES) {{
{SCAN_BODY}const bool pk_in = $first + PK_LANE < $stop; const int32_t pk_at = pk_in ? $first + PK_LANE : $first;
$acc_ctype pk_mine = 0, $total;
$body_name(pk_at, pk_mine, false);
if (!pk_in) pk_mine = 0;
$acc_ctype pk_before = $carry + $sum(pk_mine, $total, $site);
if (pk_in) $body_name(pk_at, pk_before, true);
$carry += $total; }} $result = $carry; }}"""


def row_scan(s: threads.RowScan) -> str:
    """Return the template of a scan by the lanes of a row."""
    return ROW_SCAN.replace("$sum", "pk_row_count" if s.counts else "pk_row_scan")


LEAGUE = """const int64_t pk_at = pk_a.pk_first + (int64_t)PK_BLOCK_RANK * PK_THREADS + PK_THREAD;
const bool pk_mine = pk_at < pk_a.pk_league;
"""
LEAGUE_FOR = """if (!pk_mine) return;
[[maybe_unused]] const int32_t $index = (int32_t)pk_at;
$body"""
LEAGUE_REDUCE = """$acc_ctype $acc = 0;
if (pk_mine) {
$body
}
$acc_ctype pk_sum = pk_team_sum($acc, $site);
if (PK_THREAD == 0) pk_a.pk_partial[PK_BLOCK_RANK] = pk_sum;"""
LEAGUE_SCAN = f"""{SCAN_BODY}$acc_ctype pk_term = 0, pk_total;
if (pk_mine) $body_name((int32_t)pk_at, pk_term, false);
$acc_ctype pk_before = pk_team_scan(pk_term, pk_total, $site);
if (pk_a.pk_phase == {COUNT}) {{
if (PK_THREAD == 0) pk_a.pk_partial[PK_BLOCK_RANK] = pk_total;
return; }}
pk_before += pk_a.pk_partial[PK_BLOCK_RANK];
if (pk_mine) $body_name((int32_t)pk_at, pk_before, true);"""
LEAGUES = {"for": LEAGUE + LEAGUE_FOR, "reduce": LEAGUE + LEAGUE_REDUCE, "scan": LEAGUE + LEAGUE_SCAN}

NODES = {
    ir.FunctionCall: "pk_fn_$name($args)",
    ir.LeagueRank: "(pk_a.pk_first + PK_BLOCK_RANK)",
    ir.Assign: "$name $op $value;",
    ir.Table: "PK_CONSTANT const $ctype $name[] = {$values};",
    lanes.Loop: spellings.loop,
    lanes.Evaluate: "$value;",
    lanes.DeclareConst: "const $ctype $name = $value;",
    lanes.DeclareResult: "$ctype $name;",
    lanes.LocalBlock: "{\n$body\n}",
    threads.LoadAt: "$view.get($at, $site)",
    threads.LoadTwoAt: "const pk_two<$ctype> $name = $view.get_two($at, $site);",
    threads.TableLoad: "$name[$index]",
    threads.AtomicAt: "pk_atomic<pk_op_$op>($view, $at, ($ctype)$value, $site)",
    threads.RowSum: "pk_row_sum($arg, $site)",
    threads.TeamSum: "pk_team_sum($arg, $site)",
    threads.FirstLane: "(PK_LANE == 0 ? $arg : ($ctype)0)",
    threads.StoreAt: "$view.set($at, ($ctype)$value, $site);",
    threads.UpdateAt: "{ const pk_index $place = $at; "
    "$view.set($place, ($ctype)($view.get($place, $site) $op ($value)), $site); }",
    threads.ScratchAt: "PK_SCRATCH($ctype, $name, $size, $site);",
    threads.BarrierAt: "PK_BARRIER($site);",
    threads.RowSync: "PK_ROW_SYNC($site);",
    threads.First: "if ($executor_rank == 0) {\n$body\n}",
    threads.IterationNumber: "[[maybe_unused]] const int32_t $name = $value;",
    threads.Closure: closure,
    threads.Strided: "for (int32_t $name = $start + $executor_rank, $end = $stop; "
    "$name < $end; $name += $executor_count) {\n$body\n}",
    threads.TeamScan: SCAN,
    threads.RowScan: row_scan,
    threads.LeagueRange: lambda s: LEAGUES[s.kind],
}
FIELDS = {
    "at": offset,
    "executor_rank": lambda printer, s: RANKS[s.executor],
    "executor_count": lambda printer, s: COUNTS[s.executor],
}
GPU = SpellingTable(spellings.NODES | NODES, spellings.FIELDS | FIELDS)
