"""Which file an address is in, and what the code there is called."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
