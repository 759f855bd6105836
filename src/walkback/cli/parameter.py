"""The types of parameters that this command has: their base, and what several verbs share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

Value = TypeVar("Value")

if TYPE_CHECKING:
    ParameterType = click.ParamType
else:

    class ParameterType(click.ParamType, Generic[Value]):
        """click's own takes the type of the value in brackets only from 8.4 on."""


class Seconds(click.FloatRange):
    """A time that passes; there are numbers that are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return float(seconds)
