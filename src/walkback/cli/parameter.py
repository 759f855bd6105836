"""The base of this command's own types of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import click

Value = TypeVar("Value")

if TYPE_CHECKING:
    ParameterType = click.ParamType
else:

    class ParameterType(click.ParamType, Generic[Value]):
        """click's own takes the type of the value in brackets only from 8.4 on."""
