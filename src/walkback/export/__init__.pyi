# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.export.flamegraph import write_difference as write_difference
from walkback.export.formats import FORMATS as FORMATS
