"""Grafting: putting an `.sframe` section into a finished ELF file, and taking it out again.

Knows ELF and nothing of SFrame: the section is bytes that somebody else makes for an address.
"""

from walkback.graft.add import Grafted, add, planned_address
from walkback.graft.drop import drop, is_grafted, is_recorded
from walkback.graft.objects import ObjectSection, add_to_object, set_sections
from walkback.graft.rewrite import Rewriting

__all__ = [
    "Grafted",
    "ObjectSection",
    "Rewriting",
    "add",
    "add_to_object",
    "drop",
    "is_grafted",
    "is_recorded",
    "planned_address",
    "set_sections",
]
