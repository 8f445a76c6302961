"""Words of the workunit subset, shared by the parser and the checks."""

MATH = dict.fromkeys("sqrt rsqrt exp expm1 log sin cos tan sinh cosh tanh erf erfc fabs floor ceil".split(), 1)
MATH |= {"fmin": 2, "fmax": 2, "pow": 2}

SCALARS = {
    "int": "int32",
    "bool": "bool",
    "pk.int32": "int32",
    "pk.int64": "int64",
    "pk.double": "double",
    "pk.float": "float",
}
ELEMENTS = {"pk.double": "double", "pk.float": "float", "pk.int32": "int32", "pk.int64": "int64", "pk.uint8": "uint8"}

ATOMICS = {"atomic_add": "add"}
ATOMIC_FETCHES = {f"atomic_fetch_{op}": op for op in ("add", "sub", "max", "min")}

# Attributes of a policy object, which would hide an integer argument of that name from the scratch size (part A.6).
POLICY_ATTRIBUTES = frozenset(("team_size", "vector_length", "league_size", "space", "chunk_size", "begin", "end"))

CPP_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split()
)

# Macros and type names that compilers and the generated code define.
PREDEFINED = frozenset("linux unix i386 int32_t int64_t uint8_t uint16_t uint64_t omp_get_thread_num".split())


def is_reserved(name: str) -> bool:
    """Return whether generated C++ cannot have a variable of this name."""
    prefixed = name.lower().startswith("pk") or (name[:1] == "_" and name[1:2].isupper())
    return prefixed or name in CPP_KEYWORDS or name in PREDEFINED


# A function of the kernel with one of these names would replace the C function that pk.NAME calls (part A.4).
C_LIBRARY = frozenset(MATH) | frozenset(
    """abs acos acosh asin asinh atan atan2 atanh cbrt copysign div erff exp2 fdim fma fmod frexp hypot j0 j1 jn y0 y1
    yn labs ldexp lgamma log10 log1p log2 logb lrint lround modf nan nearbyint printf rand remainder rint round scalbn
    signal system tgamma time trunc index""".split()
)

CONSTRUCTS = {
    "IfExp": ("a conditional expression", "Use an if statement"),
    "Tuple": ("a tuple", "Assign one name at a time"),
    "Lambda": ("a lambda", "Write an inner def"),
    "Slice": ("a slice", "Index one element"),
    "JoinedStr": ("an f-string", "Remove it"),
    "ListComp": ("a comprehension", "Write a loop"),
    "GeneratorExp": ("a comprehension", "Write a loop"),
    "Assert": ("assert", "Check arguments before the launch"),
    "NamedExpr": ("':='", "Assign in a statement of its own"),
    "Yield": ("yield", "Workunits return nothing"),
    "Await": ("await", "Workunits are plain functions"),
    "With": ("with", "Remove it"),
    "Try": ("try", "Workunits do not raise"),
    "Raise": ("raise", "Workunits do not raise"),
    "Global": ("global", "Pass it as a parameter"),
    "Nonlocal": ("nonlocal", "Inner bodies read outer names, and store through views"),
    "Delete": ("del", "Remove it"),
    "Dict": ("a dictionary", "Use views"),
    "Set": ("a set", "Use views"),
    "Starred": ("a starred expression", "Write the arguments out"),
    "Import": ("import", "Imports stand at the top of the file"),
    "ClassDef": ("a class", "Use scalars and views"),
    "Match": ("match", "Use if and elif"),
    "AsyncFor": ("async", "Use a plain loop"),
}


def type_kind(kind: str) -> str:
    """Return the family that a value type belongs to: ``int``, ``real`` or ``bool``."""
    if kind == "bool":
        return "bool"
    return "real" if kind in ("double", "float") else "int"
