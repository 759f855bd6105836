# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.dwarf.decoding import decode as decode
from walkback.dwarf.files import FrameSource as FrameSource
from walkback.dwarf.files import read as read
from walkback.dwarf.frames import Frames as Frames
from walkback.dwarf.rules import to_table as to_table
