"""Every statement the texts make in code is run: `# -> value` and `# raises Error: text`."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from autograd_explain.knowledge.entry import entries
from autograd_explain.render.texts import LANGUAGES

_FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"#\s*-> (.+)$")
_ERROR = re.compile(r"#\s*raises (\w+)(?:: (.*))?$")


def fences() -> Iterator[object]:
    """The code of all texts, each different piece once."""
    seen: set[str] = set()
    for entry in entries().values():
        for language in LANGUAGES:
            path = entry.text_path(language)
            text = path.read_text("utf-8") if path.exists() else ""
            for number, code in enumerate(_FENCE.findall(text), 1):
                if _bare(code) not in seen:
                    seen.add(_bare(code))
                    yield pytest.param(code, id=f"{entry.name}-{language}-{number}")


def _bare(code: str) -> str:
    return ast.unparse(ast.parse(code)) + "".join(re.findall(r"#\s*(?:->|raises).*", code))


@pytest.fixture(autouse=True)
def _grad_mode() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("code", list(fences()))
def test_statement_holds(code: str) -> None:
    namespace: dict[str, object] = {}
    lines = code.splitlines()
    used: set[int] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in ast.parse(code).body:
            claim = claim_of(statement, lines)
            used |= {claim} if claim is not None else set()
            run(statement, "" if claim is None else lines[claim], namespace)
    said = {n for n, line in enumerate(lines) if _is_claim(line)}
    assert used == said, "a claim stands at no statement"


def claim_of(statement: ast.stmt, lines: list[str]) -> int | None:
    """The line with the statement's claim: its last one, or a comment of its own around it."""
    assert statement.end_lineno is not None
    own, before, after = statement.end_lineno - 1, statement.lineno - 2, statement.end_lineno
    if _is_claim(lines[own]):
        return own
    for number, pattern in ((before, _ERROR), (after, _VALUE)):
        if 0 <= number < len(lines) and lines[number].startswith("#"):
            if pattern.search(lines[number]):
                return number
    return None


def _is_claim(line: str) -> bool:
    return bool(_VALUE.search(line) or _ERROR.search(line))


def run(statement: ast.stmt, line: str, namespace: dict[str, object]) -> None:
    """Run one statement and check its claim."""
    error, value = _ERROR.search(line), _VALUE.search(line)
    if error is not None:
        with pytest.raises(Exception) as caught:
            evaluate(statement, namespace)
        assert error[1] in [c.__name__ for c in type(caught.value).__mro__]
        assert (error[2] or "") in " ".join(str(caught.value).split())
        return
    result = evaluate(statement, namespace)
    if value is not None:
        assert same(result, value[1], namespace), f"{line.strip()!r} gave {result!r}"


def evaluate(statement: ast.stmt, namespace: dict[str, object]) -> object:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), "<text>", "eval"), namespace)
    exec(compile(ast.Module([statement], []), "<text>", "exec"), namespace)
    return None


def same(result: object, claim: str, namespace: dict[str, object]) -> bool:
    """A claim is an expression, or the way the value prints."""
    if repr(result) == claim:
        return True
    try:
        expected = eval(claim, namespace)
    except Exception:
        return False
    return bool(result == expected) if not isinstance(result, torch.Tensor) else False


def test_a_wrong_claim_is_found() -> None:
    with pytest.raises(AssertionError):
        test_statement_holds("1 + 1  # -> 3\n")
    with pytest.raises(pytest.fail.Exception):
        test_statement_holds("x = 1  # raises ValueError: no\n")


def test_every_cause_has_a_background() -> None:
    """`unknown` claims nothing; every other text tells the longer story, with code."""
    for entry in entries().values():
        if entry.name != "unknown":
            text = Path(entry.text_path("en")).read_text("utf-8")
            assert "## background" in text and _FENCE.search(text), entry.name
