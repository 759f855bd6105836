# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.store.naming import Naming as Naming
from walkback.store.selection import Selection as Selection
from walkback.store.store import Store as Store
