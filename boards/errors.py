"""The one exception for bad user input: what, where, the value, what is allowed, the nearest valid choice."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_UNSET = object()


def nearest(value: object, choices: Iterable[str]) -> str | None:
    """The member of ``choices`` that is spelled most like ``value``, or ``None`` when none is close."""
    found = get_close_matches(str(value), list(choices), n=1, cutoff=0.5)
    return found[0] if found else None


class InputError(ValueError):
    """The user's input is wrong; the command ends with exit status 2 and this message alone.

    Parameters
    ----------
    what: what is wrong, as a clause ("unknown key", "K must be positive").
    where: file and dotted path, or option name.
    value: the offending value, shown by ``repr``; leave it out when there is none.
    allowed: the legal range or choices.
    suggestion: the nearest valid value or the next step.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        value: object = _UNSET,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        self.what, self.where, self.allowed, self.suggestion = what, where, allowed, suggestion
        self.has_value = value is not _UNSET
        self.value = value if self.has_value else None
        text = f"{where}: {what}" if where else what
        if self.has_value:
            text += f", got {_short_repr(value)}"
        if allowed:
            text += f"; allowed: {allowed}"
        if suggestion:
            text += f"; {suggestion}"
        super().__init__(text)


def _short_repr(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
