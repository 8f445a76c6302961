"""Machines as data: one TOML file each, which `parki.perfmodels.machine.Machine.load` reads."""
