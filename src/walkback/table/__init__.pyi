# The public names, each with the module that it is from; `base/publicnames` finds them here.

from walkback.base.arch import Machine as Machine
from walkback.table.comparing import compare as compare
from walkback.table.rule import Part as Part
from walkback.table.rule import PartKind as PartKind
from walkback.table.rule import Reason as Reason
from walkback.table.rule import Rule as Rule
from walkback.table.table import UnwindTable as UnwindTable
from walkback.table.verdict import Verdict as Verdict
