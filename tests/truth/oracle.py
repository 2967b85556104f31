"""What a report says, held against what an observer saw: the false statements, in words.

`falsehoods` knows the report contract (`to_dict`) and the English texts, and nothing else of the
package: places, operations, versions, order and names are looked up in the observer's notes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from truth.observer import Call, Line, Observed, observe

Check = Callable[[re.Match[str], Any, Observed], bool]
_CODE = re.compile(r"`([^`]+)`")
_CITED = re.compile(r"`([^`]+)` \(In\[(\d+)\]:(\d+)\)")
_LABEL = re.compile(r"In\[(\d+)\]:(\d+)")


def falsehoods(report: Mapping[str, Any], cells: Sequence[str], fixed: frozenset[str]) -> list[str]:
    """The report's statements that are not true of a run of these cells.

    `fixed` are the code spans that the cause's text itself contains: no names of the program.
    """
    text = f"{report['headline']}\n\n{report['explanation']}"
    spans = [s for s in dict.fromkeys(_CODE.findall(text)) if s not in fixed]
    at = frozenset(_line(e) for e in report["events"] if _line(e) is not None)
    cited = frozenset((int(c), int(n)) for c, n in _LABEL.findall(text))
    names = [n for t in report["tensors"] for n in t["names"]]
    seen = observe(cells, [*names, *spans], at | cited)  # type: ignore[arg-type]
    if report["kind"] == "error" and report["message"].strip()[:60] not in seen.error:
        raise NotTheSame(seen.error)
    return [
        *_events(report, seen),
        *_tensors(report, seen),
        *_order(report, seen),
        *_quoted(text, spans, seen),
        *_claims(text, report, seen),
    ]


class NotTheSame(Exception):
    """The observed run ended otherwise: there is nothing to compare."""


def _line(event: Mapping[str, Any]) -> Line | None:
    place = event["place"]
    return None if place is None or place["cell"] is None else (place["cell"], place["line"])


def _in_words(event: Mapping[str, Any]) -> str:
    line = _line(event)
    where = "" if line is None else f"In[{line[0]}]:{line[1]}"
    return f"{event['certainty']} {event['what']} {event['op']} {event['version']} at {where}"


# -- events -------------------------------------------------------------------------------


def _events(report: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    for event in report["events"]:
        line = _line(event)
        if line is None:
            continue
        if seen.text(line).strip() != event["place"]["source"].strip():
            yield f"other text: {_in_words(event)}: {event['place']['source']!r}"
        if not _ran(line, seen):
            yield f"did not run: {_in_words(event)}"
            continue
        check = _CHECKS.get(event["what"])
        why = "" if check is None else check(event, line, report, seen)
        if why:
            yield f"{why}: {_in_words(event)}"


def _ran(line: Line, seen: Observed) -> bool:
    """Whether a statement ran that holds this line (an argument on a line of its own has no
    instruction where it is a constant)."""
    return any((line[0], n) in seen.ran for n in _rows(line, seen))


def _rows(line: Line, seen: Observed) -> range:
    """The lines of the simple statement (or the head of the block) around a line."""
    try:
        tree = ast.parse(seen.cells[line[0] - 1])
    except (SyntaxError, IndexError):
        return range(line[1], line[1] + 1)
    found = range(line[1], line[1] + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first <= line[1] <= max(last, first):
                found = range(first, max(last, first) + 1)
    return found


def _calls(line: Line, seen: Observed) -> list[Call]:
    return [c for n in _rows(line, seen) for c in seen.at((line[0], n))]


def _storages(report: Mapping[str, Any], seen: Observed) -> set[int]:
    """The memory that the culprit's names stood for."""
    culprit = next((t for t in report["tensors"] if t["role"] == "culprit"), None)
    names = [] if culprit is None else culprit["names"]
    return {s for n in names for s in seen.named.get(n, ())} - {0}


def _changed(event: Any, line: Line, report: Any, seen: Observed) -> str:
    known, calls = _storages(report, seen), _calls(line, seen)
    if line in seen.failed and any(c.raised for c in calls):
        return ""  # the write that torch refused
    if report["id"] == "silent_overwrite":  # NumPy and `.data` move no counter
        return "" if calls or _touches_numpy(line, seen) else "no call of torch"
    writes = [m for c in calls for m in c.written if not known or m.storage in known]
    if not writes:
        return "wrote nothing there" if known else "wrote nothing"
    if event["version"] is not None and event["version"] not in {m.after for m in writes}:
        return f"another version ({sorted({m.after for m in writes if m.after is not None})})"
    return ""


def _touches_numpy(line: Line, seen: Observed) -> bool:
    return line in seen.ran


def _saved(event: Any, line: Line, report: Any, seen: Observed) -> str:
    calls = _calls(line, seen)
    custom = any(c.nodes for c in calls) is False
    if event["op"] and not custom and not any(event["op"] in c.nodes for c in calls):
        return f"made other nodes ({sorted({n for c in calls for n in c.nodes})})"
    if event["version"] is None:
        return ""
    known = _storages(report, seen)
    touched = [m for c in calls for m in (*c.read, *c.made) if not known or m.storage in known]
    if touched and event["version"] not in {v for m in touched for v in (m.before, m.after)}:
        return "another version"
    return ""


def _freed(event: Any, line: Line, report: Any, seen: Observed) -> str:
    passed = [c for c in _calls(line, seen) if c.name in ("backward", "grad") and not c.raised]
    calls = ("backward", "grad", "step")
    return "" if passed or any(w in seen.text(line) for w in calls) else "no backward there"


def _detached(event: Any, line: Line, report: Any, seen: Observed) -> str:
    return "" if _calls(line, seen) else "no call of torch"  # it would cut, were it not cut before


def _failed(event: Any, line: Line, report: Any, seen: Observed) -> str:
    rows = {(line[0], n) for n in _rows(line, seen)}
    if report["kind"] != "error" or not seen.error or rows & set(seen.failed):
        return ""
    return f"failed at {seen.failed}"


_CHECKS = {
    "changed": _changed,
    "saved": _saved,
    "freed": _freed,
    "detached": _detached,
    "failed": _failed,
}


def _order(report: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Saved before it was changed: some run of the one line before some run of the other."""
    lines = {
        w: [_line(e) for e in report["events"] if e["what"] == w] for w in ("saved", "changed")
    }
    if report["kind"] != "error":
        return
    for saved in filter(None, lines["saved"]):
        for changed in filter(None, lines["changed"]):
            first = [t for n in _rows(saved, seen) for t in seen.ran.get((saved[0], n), ())]
            then = [t for n in _rows(changed, seen) for t in seen.ran.get((changed[0], n), ())]
            if first and then and min(first) > max(then):
                yield f"{changed} ran before {saved} had saved anything"


# -- tensors ------------------------------------------------------------------------------


def _tensors(report: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    for told in report["tensors"]:
        named = [(n, t) for n in told["names"] for t in seen.named.get(n, {}).values()]
        if told["names"] and not _stands(told["names"][0], report, seen):
            yield f"name stands for nothing at any of these lines: {told['names'][0]}"
        fitting = [n for n, t in named if _fits(told, t)]
        if named and not fitting:
            yield f"no name stands for such a tensor: {told['names']} {told['shape']}"


def _stands(name: str, report: Mapping[str, Any], seen: Observed) -> bool:
    """Whether a name is known at one of the lines, or stands in one of them (`self.xs = …`, where
    the statement failed before it was bound)."""
    lines = [x for e in report["events"] if (x := _line(e)) is not None]
    return name in seen.known or any(_bare(name) in _bare(_statement(x, seen)) for x in lines)


def _fits(told: Mapping[str, Any], tensor: Any) -> bool:
    return (
        told["shape"] in (None, list(tensor.shape))
        and told["dtype"] in (None, str(tensor.dtype).removeprefix("torch."))
        and told["requires_grad"] in (None, tensor.requires_grad)
    )


# -- what is quoted -----------------------------------------------------------------------


def _quoted(text: str, spans: Sequence[str], seen: Observed) -> Iterator[str]:
    for code, cell, number in _CITED.findall(text):
        line = (int(cell), int(number))
        if _bare(code) and _bare(code) not in _bare(_statement(line, seen)):
            yield f"`{code}` does not stand at In[{cell}]:{number}"
    for cell, number in _LABEL.findall(text):
        if not _ran((int(cell), int(number)), seen):
            yield f"cited and did not run: In[{cell}]:{number}"
    for span in spans:
        if not _stands_for_itself(span, seen):
            yield f"`{span}` is neither a name known there nor code that ran"


def _statement(line: Line, seen: Observed) -> str:
    return "".join(seen.text((line[0], n)) for n in _rows(line, seen))


def _bare(code: str) -> str:
    return re.sub(r"[\s'\"();]", "", code.removesuffix("…"))


def _stands_for_itself(span: str, seen: Observed) -> bool:
    """Whether it is a name that is known, a node, a value of torch, or part of code that ran."""
    parts = [p.strip() for p in span.split(", ")] if "(" not in span else [span]
    if all(_known(part, seen) for part in parts) or _of_a_class(span, seen):
        return True
    nodes = {n for c in seen.calls for n in c.nodes}
    if span in nodes or span.endswith(("Backward0", "Backward", "Backward1")) or not _bare(span):
        return True
    if re.fullmatch(r"[\w.\[\], +\-<>']*", span) and not re.search(r"[A-Za-z_]{2}", span):
        return True  # a number, a shape
    wanted = _bare(span)
    return any(wanted in _bare(_statement(line, seen)) for line in seen.ran)


def _known(name: str, seen: Observed) -> bool:
    """A long list of names ends in an ellipsis, perhaps inside a name."""
    start = name.removesuffix("…")
    return name in seen.known or (start != name and any(k.startswith(start) for k in seen.known))


def _of_a_class(span: str, seen: Observed) -> bool:
    """`Net.layers`: a line of that class which ran says `self.layers`."""
    owner, _, attribute = span.partition(".")
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == owner
        and any(
            _bare(f"self.{attribute}") in _bare(seen.text((number, line)))
            for number, line in seen.ran
            if number == cell and node.lineno <= line <= (node.end_lineno or 0)
        )
        for cell, text in enumerate(seen.cells, 1)
        for node in ast.walk(_tree(text))
    )


def _tree(cell: str) -> ast.Module:
    """A cell's tree, an empty one where it holds magics."""
    try:
        return ast.parse(cell)
    except SyntaxError:
        return ast.Module([], [])


# -- claims of single sentences -----------------------------------------------------------


def _claims(text: str, report: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    for pattern, check in CLAIMS:
        found = pattern.search(text)
        if found and not check(found, report, seen):
            yield f"claim: {found[0]!r}"


def _once_before_loop(found: re.Match[str], report: Any, seen: Observed) -> bool:
    """The line ran before the loop around the failing line was entered, and not in it."""
    cause = next((_line(e) for e in report["events"] if e["what"] == "cause"), None)
    if cause is None or not seen.failed:
        return False
    entered = [e for line in seen.failed if (e := _entered(line, seen)) is not None]
    times = [t for n in _rows(cause, seen) for t in seen.ran.get((cause[0], n), ())]
    return bool(times) and bool(entered) and any(max(times) < start for start in entered)


def _entered(line: Line, seen: Observed) -> int | None:
    """When the innermost loop around a line was last entered: its head ran, and no line of its
    body had run since the line before."""
    loops = [
        n
        for n in ast.walk(ast.parse(seen.cells[line[0] - 1]))
        if isinstance(n, (ast.For, ast.While)) and n.lineno < line[1] <= (n.end_lineno or 0)
    ]
    if not loops:
        return None
    loop = max(loops, key=lambda n: n.lineno)
    inside = range(loop.lineno + 1, (loop.end_lineno or loop.lineno) + 1)
    events = sorted((t, n) for (c, n), ts in seen.ran.items() if c == line[0] for t in ts)
    start = None
    for (_, before), (clock, now) in zip([(0, 0), *events], events):  # noqa: B905
        if now == loop.lineno and before not in inside and before != loop.lineno:
            start = clock
    return start


def _made_under(off: Callable[[Call], bool]) -> Check:
    """After the line named had run, the memory spoken of was made by a call in such a mode."""

    def check(found: re.Match[str], report: Any, seen: Observed) -> bool:
        line = (int(found["cell"]), int(found["line"]))
        since = min(
            (t for n in _rows(line, seen) for t in seen.ran.get((line[0], n), ())), default=0
        )
        known = _storages(report, seen)
        calls = [c for c in seen.calls if off(c) and c.clock > since]
        return any(not known or m.storage in known for c in calls for m in c.made)

    return check


def _ran_off(found: re.Match[str], report: Any, seen: Observed) -> bool:
    """A call of torch that stands in this code found the gradient mode off."""
    code = _bare(found["code"])
    off = {line for c in seen.calls if not c.grad_mode for line in c.lines}
    return any(code in _bare(_statement(line, seen)) for line in off)


def _several_freed(found: re.Match[str], report: Any, seen: Observed) -> bool:
    return sum(c.name in ("backward", "grad") for c in seen.calls) > 1 or "step" in str(report)


_PLACE = r"\(In\[(?P<cell>\d+)\]:(?P<line>\d+)\)"
CLAIMS = (
    (re.compile(r"ran once, before the loop"), _once_before_loop),
    (re.compile(rf"made under `[^`]+` {_PLACE}"), _made_under(lambda c: c.inference)),
    (re.compile(r"`(?P<code>[^`]+)` ran while `[^`]+` \("), _ran_off),
    (re.compile(r"an earlier backward has already freed"), _several_freed),
)
