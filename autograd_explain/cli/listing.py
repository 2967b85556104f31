"""`list`: the entries of the knowledge base, or PyTorch's messages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from ..match import rows
from ..render.texts import line
from ..search.causes import Cause, causes
from .exit import Exit


def run(options: argparse.Namespace) -> int:
    from . import language_for

    known = causes(tuple(options.causes))
    if options.messages:
        listed = [_message(row, known) for row in rows().values()]
    else:
        listed = [_entry(cause, language_for(options)) for cause in known.values()]
    word = options.word.lower()
    listed = [item for item in listed if word in json.dumps(item, ensure_ascii=False).lower()]
    if options.json:
        print(json.dumps(listed, ensure_ascii=False, indent=2))
    else:
        _print(listed)
    return Exit.FOUND if listed else Exit.NOTHING


def _entry(cause: Cause, language: str) -> dict[str, Any]:
    title = line(cause.document(language).title).plain()
    return {"id": cause.name, "title": title, "messages": list(cause.patterns)}


def _message(row: Mapping[str, Any], known: Mapping[str, Cause]) -> dict[str, Any]:
    entries = [cause.name for cause in known.values() if row["id"] in cause.patterns]
    return {
        "id": row["id"],
        "title": " ".join(row["message"].split()),
        "exception": row["exception"],
        "family": row["family"],
        "likelihood": row["likelihood"],
        "entries": entries,
    }


def _print(listed: list[dict[str, Any]]) -> None:
    width = max((len(item["id"]) for item in listed), default=0)
    for item in listed:
        title = item["title"]
        print(f"{item['id']:<{width}}  {title if len(title) <= 100 else title[:99] + '…'}")
