"""The walker: from registers and memory to stacks."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
