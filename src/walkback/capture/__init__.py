"""Where stacks come from: live processes, core files and recordings of perf."""
