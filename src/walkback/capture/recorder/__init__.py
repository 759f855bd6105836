"""Recording what runs: events of the kernel, or short stops, read while they come."""
