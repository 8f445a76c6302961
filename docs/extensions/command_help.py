"""The directive ``command-help``: what a command of ``parki`` prints with ``--help``."""

import argparse
import functools
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from parki.app.parser import of_commands, parser

WIDTH = 84


class CommandHelp(Directive):
    """The help of one command, as ``run`` or ``examples copy``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return a block with the help."""
        commands = of_commands(parser())
        if self.arguments[0] not in commands:
            raise self.error(f"there is no command {self.arguments[0]!r}; expected one of {', '.join(commands)}.")
        command = commands[self.arguments[0]]
        command.formatter_class = functools.partial(argparse.HelpFormatter, width=WIDTH)
        text = command.format_help()
        return [nodes.literal_block(text, text, language="none")]


def setup(app: Any) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
