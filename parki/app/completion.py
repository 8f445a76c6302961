"""`parki completion`: scripts that let shells complete commands and options, written by shtab."""

import argparse

from parki.app import words

MISSING = 'shtab is not installed, which writes scripts for shells: pip install "parki[completion]"'


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a shell.

    Parameters
    ----------
    parser : ArgumentParser
        Parser of all commands; its actions get the choices that shells offer.
    shell : {"bash", "zsh", "fish", "tcsh"}

    Raises
    ------
    ValueError
        If shtab is not installed.
    """
    try:
        import shtab
    except ImportError:
        raise ValueError(MISSING) from None
    from parki.app import examples
    from parki.app.parser import of_commands

    for name, command in of_commands(parser).items():
        for action in command._actions:
            if action.dest == "kernel" and action.choices is None:
                action.choices = words.KERNELS
            elif action.dest == "name" and name.startswith("examples"):
                action.choices = examples.names()
            elif action.dest == "folder":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.type is not None and action.choices is None and action.metavar in ("IN", "OUT", "FILE"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))
