"""Networks as data: one TOML file each, which `parki.perfmodels.network.Network.load` reads."""
