"""Characters that would act instead of being read: escape codes, text direction overrides, and
such as nobody sees.  Joiners (U+200C, U+200D) stay: scripts and emoji are written with them."""

from __future__ import annotations

_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_DIRECTION = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070)]
_UNSEEN = [0x200B, 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF, *range(0xFFF9, 0xFFFC)]
_ACTING = (*_CONTROL, *_DIRECTION, *_UNSEEN)
_TABLE = {code: "�" for code in _ACTING if chr(code) not in "\n\t"}
_TABLE[0x1B] = "␛"


def visible(text: str) -> str:
    """The text with every such character replaced by one that can be seen, one for one."""
    return text.translate(_TABLE)
