"""The command `walkback`: one module a verb, and nothing here that is not about arguments and printing."""

from walkback.cli.main import main

__all__ = ["main"]
