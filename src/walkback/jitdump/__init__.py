"""Dumps that JIT compilers write for perf, `jit-PID.dump`: code that was made at run time, its names and its lines."""
