# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.capture.imagemaps import images as images
from walkback.capture.methods import accuracy as accuracy
from walkback.capture.recorder.sampler import Sampler as Sampler
from walkback.capture.stacks import Stopper as Stopper
from walkback.capture.unwinding import Collector as Collector
from walkback.capture.unwinding import Unwinding as Unwinding
