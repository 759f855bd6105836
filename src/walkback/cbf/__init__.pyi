# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.cbf.backtraces import Backtrace as Backtrace
from walkback.cbf.backtraces import Backtraces as Backtraces
from walkback.cbf.checking import check as check
from walkback.cbf.decoding import decode as decode
from walkback.cbf.decoding import decode_all as decode_all
from walkback.cbf.decoding import split as split
from walkback.cbf.encoding import encode as encode
from walkback.cbf.encoding import encode_all as encode_all
from walkback.cbf.encoding import encode_columns as encode_columns
from walkback.cbf.ends import Ends as Ends
from walkback.cbf.ends import kept_ends as kept_ends
from walkback.cbf.instructions import explain as explain
from walkback.cbf.layout import FrameCode as FrameCode
from walkback.cbf.objects import from_json as from_json
from walkback.cbf.objects import to_json as to_json
