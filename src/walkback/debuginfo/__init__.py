"""Debugging information in DWARF: which functions, inlined calls and source lines code is from."""

from walkback.debuginfo.lines import DebugLines as DebugLines
