"""Turn what pydantic finds wrong with a user's mapping into one message: where, what, the value, what is allowed, what next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from boards.errors import InputError, nearest
from boards.figures import Limit
from boards.models import model_of
from boards.plain import from_mapping

M = TypeVar("M")
Path = tuple[str | int, ...]
Message = tuple[str, str | None, str | None]  # what is wrong, what is allowed, what to do

# Last words of a key, as units are written in keys, and as people write them.
UNITS = {"mt_s": "MT/s", "mb_s": "MB/s", "mhz": "MHz", "bits": "bits", "bytes": "bytes", "kib": "KiB", "mib": "MiB",
         "cycles": "core cycles", "percent": "percent", "gops": "Gop/s"}
_ORDER = ("extra_forbidden", "missing")  # a misspelt key is both: the unknown one tells more


def validate(kind: type[M], data: Mapping[str, Any], *, where: str) -> M:
    """``data`` as a pydantic model or a dataclass such as :class:`boards.schema.Board`; the first problem raises :class:`InputError` at
    ``where`` (a file) and its dotted path."""
    model: Any = model_of(kind) if is_dataclass(kind) else kind
    try:
        found = model.model_validate(data)
        return from_mapping(kind, dict(data)) if is_dataclass(kind) else found
    except ValidationError as caught:
        problems = caught.errors(include_url=False)
    problems.sort(key=lambda problem: _ORDER.index(problem["type"]) if problem["type"] in _ORDER else len(_ORDER))
    others = len(problems) - 1
    raise _explain(model, data, dict(problems[0]), where, others) from None


def unit_of(key: str) -> str | None:
    """The unit that a key's last words name, or ``None``."""
    return next((unit for words, unit in UNITS.items() if key == words or key.endswith(f"_{words}")), None)


def _explain(model: type[BaseModel], data: Mapping[str, Any], problem: dict[str, Any], where: str, others: int) -> InputError:
    path: Path = tuple(problem["loc"])
    kind = problem["type"]
    shown = _shown_path(data, path)
    place = f"{where}: {_dotted(shown)}" if shown else where
    value = problem.get("input")
    if kind == "extra_forbidden":
        what, allowed, then = _unknown_key(_fields(model, path[:-1]), str(path[-1]))
    elif kind == "missing":
        what, allowed, then, value = f"missing key {path[-1]!r}", _allowed(model, path), _missing_hint(str(path[-1])), None
        place = f"{where}: {_dotted(path[:-1])}" if path[:-1] else where
    else:
        what, allowed, then = _wrong_value(model, path, problem, value)
    hints = [then] if then else []
    if others:
        hints.append(f"{others} more problem{'s' if others > 1 else ''} in this file")
    hidden = kind == "missing" or (kind == "extra_forbidden" and isinstance(value, Mapping))
    shown_value = {} if hidden else {"value": value}
    return InputError(what, where=place, allowed=allowed, suggestion="; ".join(hints) or None, **shown_value)


def _unknown_key(fields: Mapping[str, FieldInfo], key: str) -> Message:
    allowed = ", ".join(fields)
    stems = {name[: -len(words) - 1]: name for name in fields for words in UNITS if name.endswith(f"_{words}")}
    plain = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")
    same = next((name for name in fields if name.replace("_", "") == plain.replace("_", "")), None)
    if same is None and (plain in stems or unit_of(stems.get(_stem(plain), "")) is not None):
        right = stems.get(plain) or stems[_stem(plain)]
        return ("missing unit" if plain in stems else "wrong unit"), allowed, f"use `{right}` ({unit_of(right)})"
    near = same or next(iter(get_close_matches(plain, list(fields), n=1, cutoff=0.6)), None)
    return "unknown key", allowed, f"nearest valid key: `{near}`" if near else None


def _stem(key: str) -> str:
    """``size_kib`` -> ``size``: the key without the unit it names."""
    found = next((words for words in UNITS if key.endswith(f"_{words}")), None)
    return key[: -len(found) - 1] if found else key


def _wrong_value(model: type[BaseModel], path: Path, problem: dict[str, Any], value: object) -> Message:
    kind = problem["type"]
    allowed = _allowed(model, path)
    key = next((str(part) for part in reversed(path) if isinstance(part, str) and part != "value"), "")
    if kind in ("int_type", "float_type"):
        unit = unit_of(key)
        whole = "a whole number" if kind == "int_type" else "a number"
        number = _leading_number(value)
        hint = f"{'the unit is in the key, ' if unit else ''}write `{key}: {number}`" if number else None
        return f"must be {whole}" + (f" of {unit}" if unit else ""), allowed, hint
    if kind == "enum":
        choices = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        if len(choices) == 1:
            return "not a valid choice", choices[0], None
        near = nearest(value, choices) or nearest(str(value).upper(), choices) or nearest(str(value).lower(), choices)
        return "not a valid choice", ", ".join(choices), f"nearest: {near}" if near else None
    words = {"string_type": "must be text", "tuple_type": "must be a list of texts", "finite_number": "must be a finite number",
             "model_type": "must be a mapping", "model_attributes_type": "must be a mapping", "string_too_short": "is empty",
             "string_too_long": "is too long", "too_short": "is empty", "dict_type": "must be a mapping",
             "string_pattern_mismatch": "is not a valid name",
             "invalid_key": "keys must be text"}
    if kind in words:
        hint = 'write it in quotes: "..."' if kind == "string_type" and isinstance(value, int | float) else None
        return words[kind], allowed, hint
    return ("out of range" if allowed else problem["msg"]), allowed, None


def _allowed(model: type[BaseModel], path: Path) -> str | None:
    """The legal range of the value at ``path``, from the model's own limits."""
    fields = _fields(model, path[:-1])
    field = fields.get(str(path[-1])) if path else None
    if field is None:
        return None
    if get_origin(field.annotation) is dict:
        return "a mapping of names to figures"
    inner = _model_in(field.annotation)
    if inner is not None:  # a figure: the range is its value's
        if "value" not in inner.model_fields:
            return "a mapping of " + ", ".join(inner.model_fields)
        field, unit = inner.model_fields["value"], unit_of(str(path[-1]))
    else:
        keys = path[:-1] if path[-1] == "value" else path[-1:]
        unit = next((unit for key in reversed(keys) if (unit := unit_of(str(key)))), None)
    limits = _limits(field)
    return f"{limits} ({unit})" if limits and unit else limits


def _limits(field: FieldInfo) -> str | None:
    low = high = None
    options = [limit for option in get_args(field.annotation) for limit in getattr(option, "__metadata__", ())]  # of `... | None`
    for limit in (*field.metadata, *options):
        match limit:
            case Ge(ge):
                low = f"{ge}"
            case Gt(gt):
                low = f"above {gt}"
            case Le(le):
                high = f"{le}"
            case Lt(lt):
                high = f"below {lt}"
            case MinLen() | MaxLen():
                continue
            case Limit(words=str(words)):
                return words
    lengths = [limit.max_length for limit in field.metadata if isinstance(limit, MaxLen)]
    if low is None and high is None:
        return f"1 to {lengths[0]} characters" if lengths else None
    return f"{low} to {high}" if low and high else (f"from {low}" if low else f"to {high}")


def _fields(model: type[BaseModel], path: Path) -> Mapping[str, FieldInfo]:
    """The fields of the model found by walking ``path`` from ``model``."""
    current: type[BaseModel] | None = model
    named = False  # the next part is a name that the user gave, in a mapping of any names
    for part in path:
        if named:
            named = False
            continue
        field = current.model_fields.get(str(part)) if current else None
        named = field is not None and get_origin(field.annotation) is dict
        current = _model_in(field.annotation) if field else None
    return current.model_fields if current and not named else {}


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model class in an annotation such as ``Memory | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _shown_path(data: object, path: Path) -> Path:
    """The part of pydantic's path that the user wrote: a bare figure has no ``.value``."""
    for depth, part in enumerate(path):
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return path[:depth]
    return path


def _dotted(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_key_text(part)}" for part in path).lstrip(".")


def _key_text(key: str, limit: int = 60) -> str:
    """A key as a terminal can show it: control characters and lone surrogates escaped."""
    text = key if key.isprintable() else repr(key)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _leading_number(value: object) -> str | None:
    found = re.match(r"\s*([-+]?\d+(?:\.\d+)?)\s*[A-Za-z/%]*\s*\Z", value) if isinstance(value, str) else None
    return found[1] if found else None


def _missing_hint(key: str) -> str | None:
    return "write `memory: none` for a board without external memory" if key == "memory" else None
