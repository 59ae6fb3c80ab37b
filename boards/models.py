"""The dataclasses as pydantic models, which check what a user wrote; imported for users' files alone, for pydantic takes long to load."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from boards.figures import Figure, Limit
from boards.plain import hints

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_FROM_NUMBER = ("speed_grade",)  # `speed_grade: -2` is a number to YAML


@cache
def model_of(kind: type) -> type[BaseModel]:
    """A strict model with the fields and limits of the dataclass ``kind``."""
    types = hints(kind)
    options: Any = {field.name: _option(field.name, types[field.name], field.default) for field in fields(kind)}
    return create_model(kind.__name__, __config__=_STRICT, **options)


def _option(name: str, hint: Any, default: Any) -> tuple[Any, Any]:
    checked = _checked(hint)
    if name in _FROM_NUMBER:
        checked = Annotated[checked, BeforeValidator(_number_text)]
    return checked, ... if default is MISSING else default


def _checked(hint: Any) -> Any:
    """The type of a field as a model has it."""
    dataclass: Any = hint
    made: Any = Annotated  # types are values here, which is beyond a type checker
    origin, inner = get_origin(hint), get_args(hint)
    first: Any = _checked(inner[0]) if inner else None
    if origin is Annotated:
        return made[(first, *inner[1:], *map(_field, inner[1:]))]
    if origin is tuple:
        return made[tuple[first, ...], BeforeValidator(_list)]
    if origin is dict:
        value: Any = _checked(inner[1])
        return dict[str, value]
    if NoneType in inner:
        return made[first | None, BeforeValidator(_none)]
    if issubclass(hint, Enum):
        return made[hint, Field(strict=False)]
    if issubclass(hint, Figure):
        return made[model_of(dataclass), BeforeValidator(_figure)]
    return model_of(dataclass) if is_dataclass(hint) else hint


def _field(limit: Limit) -> Any:
    named: dict[str, Any] = {"ge": limit.low, "gt": limit.above, "le": limit.high, "min_length": limit.shortest,
                             "max_length": limit.longest, "pattern": limit.pattern}
    return Field(**{name: value for name, value in named.items() if value is not None})


def _figure(value: Any) -> Any:
    return value if isinstance(value, dict) else {"value": value}


def _number_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _none(value: Any) -> Any:
    return None if value in ("none", "None") else value


def _list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
