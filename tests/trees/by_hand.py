"""Trees and pairs by slow algorithms: one node, one pair after another."""

import math

import numpy as np

ASPECT = math.sqrt(2)


class Node:
    """Node with a set of points, by number, and its children."""

    def __init__(self, x, members, level=0):
        self.members, self.level, self.children = members, level, []
        self.low, self.high = x[:, members].min(axis=1), x[:, members].max(axis=1)

    @property
    def centre(self):
        return 0.5 * self.low.astype(float) + 0.5 * self.high.astype(float)

    @property
    def radius(self):
        return math.hypot(*(0.5 * self.high.astype(float) - 0.5 * self.low.astype(float)))


def children(x, node, leaf_size, aspect=ASPECT):
    """Return the nodes that a node is cut into; none if it is a leaf."""
    n, low, high = len(node.members), node.low, node.high
    if n <= leaf_size or (low == high).all() or node.level == 99:
        return []
    half = 0.5 * high.astype(float) - 0.5 * low.astype(float)
    axes = sorted(range(3), key=lambda d: -half[d])[: 1 if n <= 2 * leaf_size else 2 if n <= 4 * leaf_size else 3]
    code = np.zeros(n, int)
    for d in axes:
        if d == axes[0] or (half[d] > half.max() / aspect and low[d] < high[d]):
            middle = x.dtype.type(0.5 * float(low[d]) + 0.5 * float(high[d]))
            upper = x[d, node.members] >= middle if middle > low[d] else x[d, node.members] == high[d]
            code += upper * (4, 2, 1)[d]
    return [Node(x, node.members[code == c], node.level + 1) for c in np.unique(code)]


def levels(x, leaf_size, aspect=ASPECT):
    """Return the nodes of every level in order, with their `children` set."""
    found, now = [], [Node(x, np.arange(x.shape[1]))]
    while now:
        found.append(now)
        for node in now:
            node.children = children(x, node, leaf_size, aspect)
        now = [child for node in now for child in node.children]
    return found


def expected(x, leaf_size, aspect=ASPECT):
    """Return the expected attributes of the tree."""
    rows = levels(x, leaf_size, aspect)
    nodes = [node for row in rows for node in row]
    number = {id(node): i for i, node in enumerate(nodes)}
    begin = {id(nodes[0]): 0}
    parent = [-1] * len(nodes)
    for i, node in enumerate(nodes):
        at = begin[id(node)]
        for child in node.children:
            begin[id(child)], parent[number[id(child)]] = at, i
            at += len(child.members)
    first = [begin[id(node)] for node in nodes]
    leaves = sorted((i for i, node in enumerate(nodes) if not node.children), key=lambda i: first[i])
    return {
        "order": np.concatenate([nodes[i].members for i in leaves]),
        "begin": first,
        "end": [b + len(node.members) for b, node in zip(first, nodes, strict=True)],
        "parent": parent,
        "first_child": [number[id(node.children[0])] if node.children else -1 for node in nodes],
        "n_children": [len(node.children) for node in nodes],
        "level": [node.level for node in nodes],
        "low": [node.low for node in nodes],
        "high": [node.high for node in nodes],
        "level_begin": np.cumsum([0, *map(len, rows)]),
        "leaves": leaves,
    }


def ball(tree, node):
    """Return centre and radius from the points themselves."""
    p = tree.sorted.points[:, tree.nodes.begin[node] : tree.nodes.end[node]].astype(float)
    low, high = p.min(axis=1), p.max(axis=1)
    return 0.5 * low + 0.5 * high, math.hypot(*(0.5 * high - 0.5 * low))


def is_far(targets, t, sources, s, theta, separation=0.0):
    (ct, rt), (cs, rs) = ball(targets, t), ball(sources, s)
    distance = math.hypot(*(ct - cs))
    return rt + rs < theta * distance and distance - rt - rs >= separation


def below(tree, node):
    return range(tree.nodes.first_child[node], tree.nodes.first_child[node] + tree.nodes.n_children[node])


def dual(targets, sources, theta, separation=0.0):
    """Return far and near pairs by the recursion of the paper's algorithm 2, by radius."""
    far, near = [], []

    def visit(t, s):
        if is_far(targets, t, sources, s, theta, separation):
            far.append((t, s))
        elif not targets.nodes.n_children[t] and not sources.nodes.n_children[s]:
            near.append((t, s))
        elif targets.nodes.n_children[t] and (
            not sources.nodes.n_children[s] or ball(targets, t)[1] > ball(sources, s)[1]
        ):
            for child in below(targets, t):
                visit(child, s)
        else:
            for child in below(sources, s):
                visit(t, child)

    visit(0, 0)
    return far, near


def batches(targets, sources, theta, separation=0.0, small=0):
    """Return far and near pairs of leaves against nodes, by the algorithm BLTC."""
    far, near = [], []

    def visit(t, s):
        if is_far(targets, t, sources, s, theta, separation):
            few = sources.nodes.end[s] - sources.nodes.begin[s] <= small
            (near if few else far).append((t, s))
        elif not sources.nodes.n_children[s]:
            near.append((t, s))
        else:
            for child in below(sources, s):
                visit(t, child)

    for leaf in targets.nodes.leaves:
        visit(int(leaf), 0)
    return far, near
