"""The neutral table in the middle: every format is a codec to or from it."""

from walkback.table.rule import OUTERMOST, RULE, Kind, Part, Reason, Rule, inexpressible
from walkback.table.table import Found, UnwindTable, rule_array

__all__ = [
    "OUTERMOST",
    "RULE",
    "Found",
    "Kind",
    "Part",
    "Reason",
    "Rule",
    "UnwindTable",
    "inexpressible",
    "rule_array",
]
