"""Compact Backtrace Format (CBF): backtraces in few bytes.

    data = encode_backtrace([(Kind.PC, 0x401136), (Kind.RA, 0x401180), (Kind.OMIT, 12), (Kind.RA, 0x401234)])
    for kind, value in decode_backtrace(data):
        print(kind.name, hex(value))

`decode_backtraces` and `encode_columns` do the same with millions of backtraces in columns.
"""

from walkback.cbf.backtraces import MOST_FRAMES, MOST_OF_ALL, Backtrace, Backtraces
from walkback.cbf.check import check_backtraces
from walkback.cbf.decode import decode_backtrace, decode_backtraces, split_backtraces
from walkback.cbf.encode import STYLES, backtrace, encode_backtrace, encode_backtraces, encode_columns
from walkback.cbf.ends import Ends, kept_ends
from walkback.cbf.instructions import Instruction, explain_backtraces
from walkback.cbf.layout import SWIFT_MOST_REPEATS, Fault, Kind
from walkback.cbf.text import from_objects, to_objects

__all__ = [
    "MOST_FRAMES",
    "MOST_OF_ALL",
    "STYLES",
    "SWIFT_MOST_REPEATS",
    "Backtrace",
    "Backtraces",
    "Ends",
    "Fault",
    "Instruction",
    "Kind",
    "backtrace",
    "check_backtraces",
    "decode_backtrace",
    "decode_backtraces",
    "encode_backtrace",
    "encode_backtraces",
    "encode_columns",
    "explain_backtraces",
    "from_objects",
    "kept_ends",
    "split_backtraces",
    "to_objects",
]
