"""Where stacks come from: live processes, core files and recordings of perf."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
