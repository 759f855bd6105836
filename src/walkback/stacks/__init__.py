"""The model of stacks: frames, samples, profiles, and what is reckoned on them."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
