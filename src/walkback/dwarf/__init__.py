"""Call frame information: `.eh_frame` and `.debug_frame`."""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
