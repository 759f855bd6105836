# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.workers.executors import DaskWorkers as DaskWorkers
from walkback.workers.executors import LocalWorkers as LocalWorkers
