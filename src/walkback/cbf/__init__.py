"""Compact Backtrace Format (CBF): backtraces in few bytes.

    data = cbf.encode([(FrameCode.PC, 0x401136), (FrameCode.RA, 0x401180), (FrameCode.OMIT, 12)])
    for kind, value in cbf.decode(data):
        print(kind.name, hex(value))

`decode_all` and `encode_columns` do the same with millions of backtraces in columns.
"""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
