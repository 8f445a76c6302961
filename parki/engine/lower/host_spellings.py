"""Spellings of hosts: scalars as C++ has them, vectors as those of `pk_vec.h`, rows as those of `pk_row.h`."""

from parki.engine.lower import spellings
from parki.engine.lower.common import CTYPES
from parki.engine.lower.printer import Printer, SpellingTable
from parki.engine.tree import ir, lanes

VECTOR = {"double": "pk_vd", "float": "pk_vf", "int32": "pk_vi", "int64": "pk_vi", "bool": "pk_vm"}
LANES = "constexpr int pk_L = {lanes}; "
ROW_TYPES = LANES + "using pk_vd = pk_row<double, pk_L>; using pk_vf = pk_row<float, pk_L>;"
LANE_TYPES = LANES + (
    "using pk_vd = pk_vec<double, pk_L>; using pk_vf = pk_vec<float, pk_L>; "
    "using pk_vi = pk_vec<pk_lane, pk_L>; using pk_vo = pk_vec<int64_t, pk_L>; "
    "using pk_vm = pk_mask<PK_LANE_BYTES, pk_L>;"
)

# Operations in each lane; others are functions of their names.
OPERATIONS = {op: f"($0 {op} $1)" for op in ("+", "-", "*", "/", "&", "|", "^", "<<", ">>")}
OPERATIONS |= {op: f"pk_test<pk_vm>($0 {op} $1)" for op in ("<", "<=", ">", ">=", "==", "!=")}
OPERATIONS |= {"neg": "(-$0)", "~": "(~$0)", "toint": "pk_toint<pk_vi>($0)", "convert": "pk_convert<$vtype>($0)"}
OPERATIONS |= {"exp_of": "pk_exp_of<$vtype>($0, $1)"}
LOADS = {1: "pk_load", 2: "pk_load2", -1: "pk_load_back"}  # by the distance in elements between lanes
STORES = {1: "pk_store", 2: "pk_store2"}


# Fields ---------------------------------------------------------------------------------------------------------------
def offset(printer: Printer, node: ir.Load) -> str:
    """Return the element offset, that of lane 0 where lanes differ."""
    parts = []
    for e, stride in zip(node.indices, printer.strides(node.view), strict=True):
        if stride == "1":
            parts.append(printer.text(e) if isinstance(e, ir.Const) else f"(int64_t){printer.text(e)}")
        elif not (isinstance(e, ir.Const) and e.value == 0):
            parts.append(f"(int64_t){printer.text(e)} * {stride}")
    return " + ".join(parts) or "0"


def lanes_offset(printer: Printer, node: lanes.Gather) -> str:
    """Return the element offsets of all lanes: the part that they share, and their own."""
    shared, vectors = [], []
    for e, varies, stride in zip(node.indices, node.varies, printer.strides(node.view), strict=True):
        if varies:
            vectors.append(f"pk_convert<pk_vo>({printer.text(e)}) * pk_splat<pk_vo>({stride})")
        else:
            shared.append(f"(int64_t){printer.text(e)} * {stride}")
    return " + ".join([f"pk_splat<pk_vo>({' + '.join(shared) or '0'})", *vectors])


def arguments(printer: Printer, e: lanes.LanesCall) -> str:
    """Return the arguments of a call; a mask follows the argument struct."""
    guard = [] if e.mask is None else ["pk_a", printer.text(e.mask)]
    return ", ".join([*map(printer.text, e.args), *guard])


FIELDS = spellings.FIELDS | {
    "vtype": lambda printer, node: VECTOR[node.type],
    "value_vtype": lambda printer, node: VECTOR[node.value.type],
    "carrier": lambda printer, s: "pk_lane" if s.acc_type in ir.INTEGERS else CTYPES[s.acc_type],
    "sign": lambda printer, s: s.op[0],
    "at": offset,
    "lanes_at": lanes_offset,
    "arguments": arguments,
    "first_lane": lambda printer, e: ", ".join(f"(int64_t)pk_get({printer.text(i)}, 0)" for i in e.indices),
    "strides": lambda printer, e: ", ".join(printer.strides(e.view)),
    "rank": lambda printer, e: str(len(e.indices)),
    "0": lambda printer, e: printer.text(e.args[0]),
    "1": lambda printer, e: printer.text(e.args[1]),
}


# Choices of templates -------------------------------------------------------------------------------------------------
def checked(e: lanes.Checked) -> str:
    """Return the template of a checked access."""
    to = "$vtype" if e.lanes else "$ctype"
    name, tail = f"{e.access}<{to}>", "" if e.value is None else ", $value"
    if e.access.startswith("atomic_"):
        name, tail = f"atomic<{to}, pk_op_{e.access.removeprefix('atomic_')}>", ", $value, pk_a.pk_shared"
    place = "pk_at<$rank>{pk_a.pk_fault_at, $site, {$first_lane}, {$extents}, {$strides}}"
    return f"pk_checked_{name}($view, {place}, $mask{tail})"


def assign(s: ir.Assign | lanes.AssignLanes) -> str:
    """Return the template of an assignment."""
    value = "$value" if s.op == "=" else "$name $sign ($value)"
    if getattr(s, "mask", None) is not None:
        value = f"pk_select($mask, {value}, $name)"
    return f"$name = {value};"


def accumulate(s: lanes.AccumulateLanes) -> str:
    """Return the template of an addition to a vector."""
    return "$name = $name + $value;" if s.mask is None else "$name = pk_select($mask, $name + $value, $name);"


def masked_loop(s: lanes.MaskedLoop) -> str:
    """Return the template of a loop that runs while a lane is left."""
    narrow = "" if s.lanes_test is None else "$live = pk_and($live, $lanes_test);\n"
    condition = "!pk_any($live)" if s.test is None else "!$test || !pk_any($live)"
    return (
        f"pk_vm $live = pk_masked<pk_vm>($mask);\nfor (;;) {{\n{narrow}if ({condition}) break;\n"
        "pk_vm $turn = $live;\n$body\n$step\n}"
    )


def leave(s: lanes.Leave) -> str:
    """Return the template that clears lanes from masks."""
    cleared = "".join(f"{m} = pk_and({m}, pk_not(pk_gone));\n" for m in s.masks)
    return f"{{ const pk_vm pk_gone = $mask;\n{cleared}}}"


def _lanes_function(s: lanes.LaneRange | lanes.Compaction, row: bool, acc: str = "") -> str:
    """Return the template of the generic lambda that runs one group of lanes."""
    types = (ROW_TYPES if row else LANE_TYPES).format(lanes="decltype(pk_tag)::value")
    head = f"auto $body_name = [&](auto pk_tag, const int32_t $index, const auto pk_given{acc}) PK_LAMBDA {{"
    return f"{head}\n{types}\n$body\n}};\n"


def lane_range(s: lanes.LaneRange) -> str:
    """Return the template of a range of lanes: whole groups without a mask, the rest masked or in narrower groups."""
    function = _lanes_function(s, s.row, ", auto& $acc" if s.acc else "")
    if s.kind == "for":
        run = "pk_for($begin, $end, $body_name)"
        if s.trip is not None:
            run = "pk_for_row<$trip>($begin, $body_name)" if s.row else "pk_for_n<$trip, PK_W>($begin, $body_name)"
        return f"{function}{run};" if s.level == "league" else f"{{\n{function}{run}; }}"
    run = "pk_reduce<$carrier>($begin, $end, $body_name)"
    run = run if s.trip is None else "pk_reduce_n<$carrier, $trip, PK_W>($begin, $body_name)"
    if s.level == "league":
        return f"{function}return ($acc_ctype){run};"
    return f"$acc_ctype $result;\n{{\n{function}$result = ($acc_ctype){run}; }}"


def compress(s: lanes.Compress) -> str:
    """Return the template of a store of values side by side; scratch has room after its end."""
    return f"pk_compress{'_in_scratch' if s.is_scratch else ''}($view + ($at), $value, $mask);"


def compaction(s: lanes.Compaction) -> str:
    """Return the template of a scan that stores values side by side."""
    total = "$acc_ctype $result = 0;\n{ $acc_ctype& $acc = $result; constexpr bool $last = true;\n"
    return f"{total}{_lanes_function(s, False)}pk_for($begin, $end, $body_name); }}"


def serial_range(s: lanes.SerialRange) -> str:
    """Return the template of a range whose iterations run one after another."""
    acc = ", $acc_ctype& $acc" if s.acc else ""
    last = "constexpr bool $last = true;\n" if s.last else ""
    function = f"auto $body_name = [&](const int32_t $index{acc}) PK_LAMBDA {{\n{last}$body\n}};"
    if s.level == "league":
        return f"{function}\nfor (int32_t pk_i = $begin; pk_i < $end; pk_i++) $body_name(pk_i, pk_total);"
    total = "$acc_ctype $result = 0;\n" if s.kind != "for" else ""
    call = f"$body_name({'pk_i, $result' if s.acc else 'pk_i'});"
    return f"{total}{{ {function} for (int32_t pk_i = $begin, pk_e = $end; pk_i < pk_e; pk_i++) {call} }}"


# Each piece begins at a cache line, and has a line after its end, which stores of whole vectors may overwrite.
SCRATCH = """const int64_t pk_n0_$name = $size;
$ctype* const __restrict__ $name = ($ctype*)(pk_scratch + pk_used);
pk_used += (pk_n0_$name * (int64_t)sizeof($ctype) + 63) / 64 * 64 + 64;
pk_asked += (pk_n0_$name * (int64_t)sizeof($ctype) + 7) / 8 * 8;
if (pk_n0_$name < 0 || pk_asked > pk_a.pk_scratch_asked) {
pk_ok(pk_a.pk_fault_at, -1, 0, pk_n0_$name < 0 ? pk_n0_$name : pk_asked, 0); return; }"""

SCALARS = {
    ir.LeagueRank: "pk_rank",
    ir.Load: "$view[$at]",
    ir.Assign: assign,
    ir.Store: "$view[$at] = $value;",
    ir.Table: "static const $ctype $name[] = {$values};",
    ir.Scratch: SCRATCH,
    ir.Single: "[&]() PK_LAMBDA {\n$body\n}();",
    lanes.LanesCall: lambda e: "pk_fn_$name<pk_L>($arguments)" if e.lanes else "(($ctype)pk_fn_$name<1>($arguments))",
    lanes.Checked: checked,
    lanes.Update: "$old $op ($value)",
    lanes.AtomicScalar: "pk_atomic<pk_op_$op>($view + ($at), ($ctype)($value), pk_a.pk_shared)",
    lanes.DeclareConst: "const $ctype $name = $value;",
    lanes.Evaluate: "$value;",
    lanes.LocalBlock: "{\n$body\n}",
    lanes.Loop: spellings.loop,
    lanes.ClearScratch: "__builtin_memset($name, 0xff, pk_n0_$name * sizeof($ctype));",
    lanes.SerialRange: serial_range,
}
VECTORS = {
    lanes.Lanewise: lambda e: OPERATIONS.get(e.op, f"pk_{e.op}($args)"),
    lanes.Splat: lambda e: "pk_to_mask<$vtype>($arg)" if e.type == "bool" else "pk_splat<$vtype>($arg)",
    lanes.Affine: "pk_affine<$vtype>($arg, $step)",
    lanes.LoadLanes: lambda e: LOADS[e.step] + "<$vtype>($view + ($at), $mask)",
    lanes.Gather: "pk_gather<$vtype>($view, $lanes_at, $mask)",
    lanes.AtomicLanes: "pk_atomic_lanes<pk_op_$op>($view, $lanes_at, $value, $mask, pk_a.pk_shared)",
    lanes.AllLanes: "pk_true{}",
    lanes.Masked: "pk_masked<pk_vm>($mask)",
    lanes.AnyLane: "pk_any($mask)",
    lanes.ActiveLanes: "pk_kept($mask)",
    lanes.DeclareLanes: "$vtype $name = $value;",
    lanes.DeclareConstLanes: "const $vtype $name = $value;",
    lanes.AssignLanes: assign,
    lanes.AccumulateLanes: accumulate,
    lanes.StoreLanes: lambda s: STORES[s.step] + "($view + ($at), $value, $mask);",
    lanes.StorePair: "pk_store_pair($view + ($at), $value, $other, $mask);",
    lanes.Compress: compress,
    lanes.Scatter: "pk_scatter($view, $lanes_at, $value, $mask);",
    lanes.MaskedLoop: masked_loop,
    lanes.Leave: leave,
    lanes.LaneRange: lane_range,
    lanes.Compaction: compaction,
}
ROWS = {
    lanes.RowSplat: "pk_row_splat<$vtype>($arg)",
    lanes.RowLoad: "pk_row_load<$vtype>($view + ($at))",
    lanes.RowStore: "pk_row_store($view + ($at), $value);",
}
HOST = SpellingTable(spellings.NODES | SCALARS | VECTORS | ROWS, FIELDS)
