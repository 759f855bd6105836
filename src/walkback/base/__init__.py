"""What every part of the package needs and that knows nothing of stacks: machines, errors, checked reading, text."""
