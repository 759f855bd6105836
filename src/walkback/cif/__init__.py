"""Compact Image Map Format (CIF): the files that a backtrace's addresses fall into.

images = decode_images(data)
print(images.resolve([0x401136]))
assert decode_images(encode_images(images)) == images
"""

from walkback.cif.decode import Part, check_images, decode_images, explain_images
from walkback.cif.encode import STYLES, Style, encode_images
from walkback.cif.imagemap import Image, ImageMap
from walkback.cif.objects import images_from_json, images_object

__all__ = [
    "STYLES",
    "Image",
    "ImageMap",
    "Part",
    "Style",
    "check_images",
    "decode_images",
    "encode_images",
    "explain_images",
    "images_from_json",
    "images_object",
]
