"""What SFrame would cost and cover over thousands of files, kept as tables that anyone can query."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
