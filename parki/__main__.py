"""Command line, run as ``python -m parki``."""

import sys

from parki.cli import main

sys.exit(main())
