"""`parki bench report`: a named set of benchmarks, a record of all its times, and pages written from the record."""
