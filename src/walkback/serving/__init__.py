"""A store on a page: a small server on this machine, which answers what the verbs of a store answer."""
