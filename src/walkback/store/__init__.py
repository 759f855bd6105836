"""A store of stacks: many samples of many programs, kept small and asked later."""
