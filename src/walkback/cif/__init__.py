"""Compact Image Map Format (CIF): the files that a backtrace's addresses fall into.

images = walkback.cif.decode(data)
print(images.resolve([0x401136]))
assert walkback.cif.decode(walkback.cif.encode(images)) == images
"""

from walkback.base.publicnames import public_names

__getattr__, __dir__ = public_names(__name__)
