"""Structure of the code: imports point one way, and files stay short."""

import ast
import re

import pytest

FOLDERS = {"parki": "parki", "kernels": "parki.kernels", "perfmodels": "parki.perfmodels"}
SHARED = """
adjoints all_pairs arguments arrays cells charges checks counts dimensions direct_method docstrings energies error
excluding exclusions fft flows fluctuations freespace hints kernel_parameters keywords lanczos lattice left_out lengths
memory method moves names neighbours normal operators options own_terms pairs plan prediction proxies queries ranks
saying scaling spelling tables timing trees units utils
""".split()
SHARED = tuple(f"parki.{name}" for name in SHARED)
COMMANDS = "__main__ app assembly cli console demo doctor files formats portions progress".split()
COMMANDS = tuple(f"parki.{name}" for name in COMMANDS)
LONGEST = 400  # lines

# Rooms of parki.perfmodels that run the code that they model or measure, and their modules that run nothing.
RUNNING = "bench models published ranks".split()
STILL = "models.plot models.table published.kosmacher published.trees ranks.planning ranks.shares ranks.sums".split()
MODELS = tuple(f"parki.perfmodels.{name}" for name in "counts machine network roofline select window_rows".split())

# The first row with the name of a module, or of a package above it, lists the allowed imports from parki.
EDGES = {
    "parki.engine": ("parki.engine",),
    "parki.kernels": ("parki.kernels",),
    "parki.perfmodels.bench.handwritten": ("parki.engine",),
    **dict.fromkeys([f"parki.perfmodels.{name}" for name in STILL], ("parki.perfmodels",)),
    **dict.fromkeys([f"parki.perfmodels.{name}" for name in RUNNING], ("parki",)),
    "parki.perfmodels.machinecode.table": ("parki.perfmodels",),
    "parki.perfmodels.machinecode": ("parki.perfmodels.machinecode", "parki.engine"),
    **dict.fromkeys(MODELS, MODELS),
    "parki.perfmodels.tasks": ("parki.tasks", *MODELS),
    "parki.perfmodels": ("parki.perfmodels",),
    "parki.distributed.bricks": ("parki.distributed", "parki.ewald", *SHARED, "parki.engine", *MODELS),
    "parki.distributed.trees": ("parki.distributed", "parki.trees", "parki.arrays", "parki.engine"),
    "parki.distributed.treecode": ("parki.distributed", "parki.treecode", *SHARED, "parki.engine", *MODELS),
    "parki.distributed.fmm": ("parki.distributed", "parki.fmm", *SHARED, "parki.engine", *MODELS),
    "parki.distributed.direct": ("parki.distributed", *SHARED, "parki.engine"),
    "parki.distributed.freespace": ("parki.distributed", *SHARED, "parki.engine"),
    "parki.distributed.ewald": ("parki.ewald", "parki.arrays"),
    "parki.distributed.exchange": (
        "parki.distributed",
        "parki.arrays",
        "parki.engine",
        "parki.perfmodels.network",
    ),
    "parki.distributed.network": ("parki.distributed", "parki.engine", *MODELS),
    "parki.distributed": ("parki.distributed", "parki.arrays", "parki.engine"),
    "parki.ewald.api": ("parki.ewald", "parki.per_particle", *SHARED, "parki.engine", "parki.distributed.bricks"),
    "parki.ewald": ("parki.ewald", "parki.spheres", *SHARED, "parki.engine", *MODELS),
    **dict.fromkeys(SHARED, (*SHARED, "parki.engine")),
    **dict.fromkeys(("parki.ranks", "parki.all_pairs", "parki.timing"), (*SHARED, "parki.engine", "parki.distributed")),
    "parki.direct_method": (*SHARED, "parki.engine", "parki.perfmodels.counts.clusters"),
    "parki.direct": ("parki.per_particle", "parki.spheres", *SHARED, "parki.engine", "parki.distributed.direct"),
    "parki.prediction": ("parki.engine", "parki.perfmodels.machine", "parki.timing"),
    "parki.tasks": ("parki.tasks", "parki.arrays", "parki.engine"),
    "parki.trees": ("parki.trees", "parki.arrays", "parki.memory", "parki.engine"),
    "parki.spheres": ("parki.spheres", *SHARED, "parki.engine"),
    "parki.softening": ("parki.softening", *SHARED, "parki.engine"),
    "parki.per_particle": ("parki.softening", "parki.spheres", *SHARED),
    "parki.treecode.api": (
        "parki.treecode",
        "parki.per_particle",
        "parki.spheres",
        *SHARED,
        "parki.engine",
        "parki.distributed.treecode",
    ),
    "parki.fmm.api": (
        "parki.fmm",
        "parki.per_particle",
        "parki.spheres",
        *SHARED,
        "parki.engine",
        "parki.distributed.fmm",
    ),
    "parki.fmm.scheduling": ("parki.fmm", *SHARED, "parki.engine", "parki.tasks", "parki.perfmodels.tasks", *MODELS),
    "parki.fmm": ("parki.fmm", *SHARED, "parki.engine", "parki.tasks", *MODELS),
    "parki.treecode": ("parki.treecode", *SHARED, "parki.engine", "parki.tasks", *MODELS),
    "parki.automatic": (
        "parki.automatic",
        *SHARED,
        "parki.engine",
        "parki.ewald",
        "parki.fmm",
        "parki.treecode",
    ),
    "parki.samples": ("parki.docstrings", "parki.memory"),
    "parki.celllist": ("parki.arrays", "parki.memory", "parki.names", "parki.utils", "parki.engine"),
    "parki.ase": ("parki.ewald", "parki.exclusions", "parki.units"),
    "parki.differentials": ("parki.adjoints", "parki.arrays", "parki.pairs"),
    "parki.differentiable": (*SHARED, "parki.ewald", "parki.keywords"),
    "parki.torch": ("parki.arguments", "parki.differentiable", "parki.ewald", "parki.keywords", "parki.torch_methods"),
    "parki.torch_methods": ("parki.differentiable", "parki.docstrings", "parki.torch_sum"),
    "parki.torch_sum": ("parki.differentiable", "parki.differentials"),
    "parki.jax": ("parki.differentiable", "parki.docstrings", "parki.jax_sum"),
    "parki.jax_sum": ("parki.differentiable", "parki.differentials"),
    **dict.fromkeys(COMMANDS, ("parki",)),
    "parki": (),
}


def python_files(root, *folders):
    return [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]


def module_of(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join([FOLDERS.get(parts[0], parts[0]), *parts[1:]]).removesuffix(".__init__")


def is_in(name, package):
    return name == package or name.startswith(f"{package}.")


def imports(path, types=True):
    """Yield the imports of a file: line, level of a relative import, full name; `types`: also those for types."""
    tree = ast.parse(path.read_text("utf-8"))
    if not types:
        tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, node.level, f"{node.module}.{alias.name}") for alias in node.names)


def forbidden(module, names):
    """Return the elements of `names` that this module must not import."""
    allowed = next(edges for row, edges in EDGES.items() if is_in(module, row))
    ours = [name for name in names if is_in(name, "parki")]
    return [name for name in ours if not any(is_in(name, package) for package in allowed)]


def test_imports_point_one_way(root):
    # The package itself tells type checkers which modules it loads on first use.
    wrong = [
        f"{path.relative_to(root)}:{line} imports {name}"
        for path in python_files(root, *FOLDERS)
        for line, _, name in imports(path, types=module_of(path, root) != "parki")
        if forbidden(module_of(path, root), [name])
    ]
    assert wrong == []


FACES = ("parki/engine/__init__.py", "parki/engine/steps/__init__.py")


def offered(root):
    """Return the full names that the engine offers to the rest of parki."""
    names = {"parki.engine", "parki.engine.steps"}
    for path in (root / face for face in FACES):
        bound = (a for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.ImportFrom) for a in n.names)
        names |= {f"{module_of(path, root)}.{alias.asname or alias.name}" for alias in bound}
    return names


def test_the_engine_is_used_through_its_face(root):
    names = offered(root)
    assert "parki.engine.Space" in names
    wrong = [
        f"{path.relative_to(root)}:{line} imports {name}"
        for path in python_files(root, *FOLDERS, "examples")
        if not path.is_relative_to(root / "parki/engine")
        for line, _, name in imports(path)
        if is_in(name, "parki.engine") and name not in names
    ]
    assert wrong == []


def test_what_ties_the_engine_to_parki_is_in_one_file(root):
    # compile/nvrtc.py is a program, too, which imports nothing of parki
    tied = {
        str(path.relative_to(root))
        for path in python_files(root, "parki/engine")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and str(node.value).startswith(("PARKI_", "parki[", "parki.kernels"))
    }
    assert tied - {"parki/engine/compile/nvrtc.py"} == {"parki/engine/config.py"}


@pytest.mark.parametrize(
    ("module", "name", "allowed"),
    [
        ("parki.engine.run.launch", "parki.arrays.points", False),
        ("parki.engine.run.launch", "parki.engine.errors", True),
        ("parki.engine.run.launch", "numpy", True),
        ("parki.ewald.method", "parki.perfmodels.select.p2p", True),
        ("parki.ewald.method", "parki.perfmodels.bench", False),
        ("parki.ewald.method", "parki.cli", False),
        ("parki.plan", "parki.ewald.method", False),
        ("parki.arrays", "parki.ewald", False),
        ("parki.treecode.method", "parki.ewald.kernels", False),
        ("parki.trees.dual", "parki.pairs", False),
        ("parki.fmm.expansion", "parki.treecode.steps", False),
        ("parki.treecode.steps", "parki.fmm.expansion", False),
        ("parki.fmm.expansion", "parki.proxies", True),
        ("parki.fmm.work", "parki.perfmodels.counts.fmm", True),
        ("parki.treecode.work", "parki.perfmodels.models.treecode", False),
        ("parki.prediction", "parki.perfmodels.machine", True),
        ("parki.prediction", "parki.perfmodels.select", False),
        ("parki.celllist", "parki.cells", False),
        ("parki.perfmodels.counts.p2p", "parki.ewald.choice.params", False),
        ("parki.perfmodels.counts.fmm", "parki.perfmodels.bench", False),
        ("parki.perfmodels.tasks", "parki.tasks.graph", True),
        ("parki.perfmodels.tasks", "parki.fmm.work", False),
        ("parki.tasks.simulate", "parki.engine.devices", True),
        ("parki.tasks.simulate", "parki.perfmodels.tasks", False),
        ("parki.perfmodels.bench.sums", "parki.ewald.api", True),
        ("parki", "parki.ewald", False),
    ],
)
def test_the_rule_itself(module, name, allowed):
    assert (forbidden(module, [name]) == []) is allowed


def circles(edges):
    """Return sets of modules that import each other, also indirectly; `edges` are the imports of each module."""
    reached = {name: set(there) for name, there in edges.items()}
    while True:
        wider = {name: there.union(*(reached[other] for other in there)) for name, there in reached.items()}
        if wider == reached:
            break
        reached = wider
    return {frozenset(o for o in reached[name] if name in reached[o]) for name in reached if name in reached[name]}


def test_ewald_imports_in_no_circle(root):
    """Check all imports, also those for types alone."""
    files = {module_of(path, root): path for path in python_files(root, "parki/ewald") if path.stem != "__init__"}
    found = {module: {full for _, _, full in imports(path)} for module, path in files.items()}
    edges = {
        module: {name for name in files if any(is_in(full, name) for full in some)} for module, some in found.items()
    }
    assert edges["parki.ewald.stages.radial"] == {
        "parki.ewald.split.far_parts",
        "parki.ewald.split.series",
        "parki.ewald.choice.params",
    }
    assert circles(edges) == set()


def test_circles_are_found():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert circles(edges) == {frozenset("abc"), frozenset("f")}


def test_kernels_import_only_the_language(root):
    wrong = [
        f"{path.relative_to(root)}:{line} imports {name}"
        for path in python_files(root, "kernels")
        for line, _, name in imports(path)
        if not any(is_in(name, package) for package in ("pykokkos", "typing", "parki.kernels"))
    ]
    assert wrong == []


def test_kernels_mention_no_device(root):
    words = re.compile(r"\b(cuda|hip|gpu|gpus|device|devices|nvidia|amd|warp|warps|openmp)\b", re.IGNORECASE)
    lines = [
        f"{path.relative_to(root)}:{n}: {line}"
        for path in python_files(root, "kernels")
        for n, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if words.search(line)
    ]
    assert lines == []


def test_no_relative_imports(root):
    wrong = [
        f"{path.relative_to(root)}:{line}"
        for path in python_files(root, *FOLDERS, "tests", "examples")
        for line, level, _ in imports(path)
        if level
    ]
    assert wrong == []


def test_the_engine_knows_no_particles(root):
    files = python_files(root, "parki/engine")
    assert files
    assert [str(path) for path in files if "particle" in path.read_text("utf-8").lower()] == []


def test_no_file_is_long(root):
    files = [*python_files(root, *FOLDERS, "tests", "examples"), *(root / "parki").rglob("*.h")]
    lengths = {str(path.relative_to(root)): len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}
