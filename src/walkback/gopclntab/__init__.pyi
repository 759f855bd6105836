# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.gopclntab.decoding import FunctionTable as FunctionTable
from walkback.gopclntab.decoding import decode as decode
from walkback.gopclntab.files import GoSource as GoSource
from walkback.gopclntab.files import read as read
from walkback.gopclntab.layout import Layout as Layout
from walkback.gopclntab.rules import to_table as to_table
