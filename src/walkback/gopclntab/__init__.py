"""Go's table of functions, `.gopclntab`: how deep the stack is at each instruction, and the names of functions."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
