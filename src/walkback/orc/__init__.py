"""The Linux kernel's own unwind tables on AMD64, `.orc_unwind`: read, written, and made from other tables."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
