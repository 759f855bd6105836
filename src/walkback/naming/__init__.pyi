# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.debuginfod.environment import debuginfod_servers as debuginfod_servers
from walkback.elf.search import FileSearch as FileSearch
from walkback.naming.located import Locator as Locator
from walkback.naming.located import locate_frames as locate_frames
from walkback.naming.modules import Modules as Modules
