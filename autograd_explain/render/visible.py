"""Characters that would act instead of being read: escape codes, text direction overrides."""

from __future__ import annotations

_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_DIRECTION = [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_TABLE = {code: "�" for code in (*_CONTROL, *_DIRECTION) if chr(code) not in "\n\t"}
_TABLE[0x1B] = "␛"


def visible(text: str) -> str:
    """The text with every such character replaced by one that can be seen, one for one."""
    return text.translate(_TABLE)
