# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.cif.decoding import check as check
from walkback.cif.decoding import decode as decode
from walkback.cif.decoding import explain as explain
from walkback.cif.encoding import encode as encode
from walkback.cif.imagemap import Image as Image
from walkback.cif.imagemap import ImageMap as ImageMap
from walkback.cif.objects import from_json as from_json
from walkback.cif.objects import to_json as to_json
