"""A store of stacks: many samples of many programs, kept small and asked later."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
