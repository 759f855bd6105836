"""What stacks are written as: folded, perf-script text, pprof, speedscope, Firefox Profiler, flame graphs."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
