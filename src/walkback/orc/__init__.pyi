# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.orc.decoding import OrcTable as OrcTable
from walkback.orc.decoding import decode as decode
from walkback.orc.encoding import encode as encode
from walkback.orc.files import OrcSource as OrcSource
from walkback.orc.files import read as read
from walkback.orc.layout import Layout as Layout
from walkback.orc.rules import to_table as to_table
from walkback.orc.words import from_table as from_table
