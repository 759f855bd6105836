# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.sframe.builder import SectionBuilder as SectionBuilder
from walkback.sframe.building import build as build
from walkback.sframe.checking import Report as Report
from walkback.sframe.checking.codes import CODES as CODES
from walkback.sframe.checking.codes import Severity as Severity
from walkback.sframe.decoding import decode as decode
from walkback.sframe.decoding import decode_all as decode_all
from walkback.sframe.encoding import encode as encode
from walkback.sframe.encoding import with_byteorder as with_byteorder
from walkback.sframe.files import SFrameSection as SFrameSection
from walkback.sframe.files import Source as Source
from walkback.sframe.files import read as read
from walkback.sframe.planning import refusals as refusals
from walkback.sframe.rules import to_table as to_table
from walkback.sframe.section import Section as Section
