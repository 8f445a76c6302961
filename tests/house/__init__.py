"""Commands for developers: comparison with an earlier commit, and measures of the tree.

Run them from the repository's root::

    python -m tests.house.compare bits   [BASE] [--quick] [--only PATTERN] [--list]    results, bit for bit
    python -m tests.house.compare speed  [BASE] [--turns 15] [--only PATTERN] [--list]  ratios of times, in paired turns
    python -m tests.house.compare memory [BASE] [--only PATTERN] [--list]               peak memory of `move`
    python -m tests.house.measures                                                      measures of the tree
    python -m tests.house.measures first-call                                           first calls on an empty cache

BASE is a commit, HEAD if it is left out; the other side is the working tree as it is.  Each tree runs in a process of
its own with its own kernels and models: `sources` finds modules by the tree's pyproject.toml alone, and the process
refuses to answer with a module from elsewhere.  Both trees share compiled objects, whose keys hash their text, and
nothing else of the cache: `caches`.  `cases` has the table of calls, `calls` makes them, `bits`, `speed` and `memory`
judge.

`test_measures` holds each measure at the figure that the tree has; a commit that lowers one lowers its bound.
"""
