"""What stacks are written as: folded, perf-script text, pprof, speedscope, Firefox Profiler, flame graphs."""
