# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.walking.samples import Memory as Memory
from walkback.walking.samples import Samples as Samples
from walkback.walking.samples import Space as Space
from walkback.walking.walker import Walker as Walker
