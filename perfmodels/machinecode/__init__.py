"""Machine code of GPU kernels: its loops, instructions by pipe, and the pipe that bounds a turn of each loop."""
