"""The SFrame format."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
