# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.stacks.changes import difference as difference
from walkback.stacks.profile import Profile as Profile
from walkback.stacks.stacks import End as End
from walkback.stacks.stacks import FrameKind as FrameKind
from walkback.stacks.stacks import How as How
from walkback.stacks.stacks import Stacks as Stacks
from walkback.stacks.top import hottest as hottest
