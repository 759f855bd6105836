"""SFrame from any producer to any consumer: converted between versions, merged, repaired, split.

Everything goes by way of the neutral table: `gather` reads what many sections say, `merge` settles what they say twice,
`make` writes it as one section. `convert`, `link`, `fix` and `split` do that for files.
"""
