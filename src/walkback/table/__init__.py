"""The neutral table in the middle: every format is a codec to or from it."""

from walkback.table.rule import OUTERMOST, REASON_WORDS, RULE, Kind, Part, Reason, Rule, inexpressible
from walkback.table.table import Found, UnwindTable, joined, rule_array

__all__ = [
    "OUTERMOST",
    "REASON_WORDS",
    "RULE",
    "Found",
    "Kind",
    "Part",
    "Reason",
    "Rule",
    "UnwindTable",
    "inexpressible",
    "joined",
    "rule_array",
]
