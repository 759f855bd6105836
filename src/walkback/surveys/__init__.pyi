# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.surveys.reading import Survey as Survey
from walkback.surveys.run import survey as survey
