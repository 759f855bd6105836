"""The walker: from registers and memory to stacks."""
