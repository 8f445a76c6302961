"""Calls of compiled workunits: one launch bound to its arguments, on a host, in the simulator or on a device."""
