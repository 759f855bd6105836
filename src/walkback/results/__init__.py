"""The classes of what functions return, to annotate with."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
