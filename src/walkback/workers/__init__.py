"""Who does work that can be divided: processes on this machine, or the workers of a Dask cluster."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
