"""The neutral table in the middle: every format is a codec to or from it."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
