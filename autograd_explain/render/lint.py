"""What must hold for the texts of a cause, in every language; an empty list is a clean folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from markdown_it.token import Token

from . import texts as texts_module
from .commands import commands
from .fill import is_cjk, joined_lines, placeholders
from .table import columns_of
from .texts import LANGUAGES, Document, parser, split_title

_KNOWN = re.compile(r"(summary|cause|check)( \w+)?\Z|fix [\w-]+\Z|(warnings|background)\Z")
_LISTS = ("warnings", "check")
_CLAIMING = re.compile(r"(summary|cause)( |\Z)")
_HISTORY = re.compile(
    r"\b(ran once|never|no longer|would not help|nothing \w+s|again in between)\b"
    r"|\bbefore the (loop|first)\b"
)
_SENTENCE = re.compile(r"(?<=[.;:])\s+")
_KANA = re.compile(r"[ぁ-んァ-ヺ]")
_HALF_WIDTH = re.compile(r"[、-鿿）][,;:!?.](?![\w.(])")
_CHAR, _MARK = "[ぁ-んァ-ヺ一-鿿]", "[、。，；：！？（）「」]"
_SPACED = re.compile(rf"{_CHAR} +{_CHAR}|{_MARK} | {_MARK}|\u3000")
_GLUED = re.compile(r"[ぁ-んァ-ヺ一-鿿][A-Za-z0-9]|[A-Za-z0-9][ぁ-んァ-ヺ一-鿿]")
#: A Japanese sentence is polite; titles and what stands in brackets are none.
_POLITE = "です ます ません でした ました ください しょう ですか ますか せんか しょうか"
_BLUNT = re.compile("".join(f"(?<!{end})" for end in _POLITE.split()) + "。")
_BRACKETS = re.compile(r"（[^（）]*）")
#: One thing has one name: what is not written in a language (a pattern), and what stands for it.
GLOSSARY: Mapping[str, Mapping[str, str]] = {
    "ja": {
        "逆伝播": "backward",
        "書き換え案": "修正案",
        "頼[まみむんも]": "指定",
        "入り込": "さかのぼる",
        "(次|以後|全部|すべて)の回|各回|反復": "イテレーション",
        "接線": "接ベクトル",
        "モーメンタム": "モメンタム",
        "フォワード(?!モード)": "順伝播",
        "(?<![A-Za-z.])optimizer(?![A-Za-z.])": "オプティマイザ",
        "(?<![A-Za-z_-])hook": "フック",
        "(?<!言)葉|リーフのテンソル": "リーフ, リーフテンソル",
        "その場で|直接書き": "インプレース",
        "大きさ": "サイズ (of a tensor)",
        "(?<!ブロード)キャスト": "型変換",
        "活性(?![値化])": "活性値",
        "[一二三]回|二階|[二三]つ|(?<!の)一つ(?![ひもでに])": "1 回, 2 階, 3 つ",
        "わか[らりるれっ]|既に|遡|気づ|(?<![のそ])他の": "分か, すでに, さかのぼ, 気付, ほかの",
    },
    "zh": {
        "改写": "覆盖 (of a value), 修改建议 (a rewrite)",
        "反向传播": "backward",
        "叶子(?!张量)": "叶子张量",
        "得分": "输出值",
        "反向(?!模式)": "backward",
        "前向(?!传播|模式|代码|计算)": "前向传播",
        "就地": "原地",
        "(?<!深)拷贝": "复制, 副本",
        "(?<![A-Za-z_-])[Hh]ook": "钩子",
        "(?<![A-Za-z-])batch(?![A-Za-z])": "批次",
        "(?<![A-Za-z])scaler(?![A-Za-z])": "缩放器",
        "步幅": "步长",
        "Hessian": "黑塞矩阵",
        "基础?张量": "原张量",
        "抽样": "采样",
        "登记": "注册",
        "尺寸": "大小",
        "清除|清零梯度": "清空",
        "带图|从图中|的是图": "计算图",
        "名称": "名字",
        "源码": "源代码",
        "[「」『』]": "“”",
    },
}
_COMMENT = re.compile(r"#(?! raises | -> ).*")


def problems(folder: Path, example: Mapping[str, str]) -> list[str]:
    """Everything wrong with the text files of a cause whose EXAMPLE facts are `example`."""
    texts = texts_module.load(folder)
    missing = [f"{language}.md is missing" for language in LANGUAGES if language not in texts]
    if "en" not in texts:
        return missing
    documents = {language: texts_module.read(text) for language, text in texts.items()}
    example = {**commands(), **example, **dict.fromkeys(columns_of(folder), "")}
    found = list(missing)
    for language, document in documents.items():
        found += (f"{language}.md: {p}" for p in _alone(document, language, example))
        found += (f"{language}.md: {p}" for p in _needs(document, language, example))
        if language != "en":
            found += (f"{language}.md: {p}" for p in _against(document, documents["en"]))
    revision = texts_module.revision((folder / "en.md").read_bytes())
    for language, document in documents.items():
        if language != "en" and document.english != revision:
            found.append(f"{language}.md: translates another en.md (accept it once it is in step)")
    return found


# -- one language -------------------------------------------------------------------------


def _alone(document: Document, language: str, example: Mapping[str, str]) -> Iterator[str]:
    yield from _front_matter(document)
    if not document.source("summary"):
        yield "no `## summary`"
    for name, source in document.sections.items():
        tokens = parser().parse(_title_apart(name, source))
        found = (
            *_section_form(name, source, tokens),
            *(f"{{{n}}} is not in EXAMPLE" for n in sorted(placeholders(tokens) - example.keys())),
            *_writing(tokens, language),
        )
        yield from (f"`## {name}`: {problem}" for problem in found)
    yield from (f"title: {slip}" for slip in other_terms(document.title, language))


def slips(document: Document, language: str) -> Iterator[str]:
    """Slips of writing in texts that are of no cause."""
    for name, source in document.sections.items():
        tokens = parser().parse(_title_apart(name, source))
        yield from (f"`## {name}`: {slip}" for slip in _writing(tokens, language))


def other_terms(text: str, language: str) -> Iterator[str]:
    """Where a text names something otherwise than the glossary does."""
    for pattern, term in GLOSSARY.get(language, {}).items():
        slip = re.search(pattern, text)
        if slip:
            yield f"{slip[0]!r} instead of {term}"


def _needs(document: Document, language: str, example: Mapping[str, str]) -> Iterator[str]:
    """What sections need is said once, in English, of facts that exist; and where a section tells
    what the program did once, never or no longer, it has to be said."""
    if language != "en":
        if document.needs:
            yield "`needs` belongs into en.md"
        return
    for name, facts in document.needs.items():
        if name not in document.sections:
            yield f"`needs` names no section: {name}"
        unknown = [fact for fact in facts if fact not in example]
        if unknown:
            yield f"`needs` of `{name}` names facts that are not in EXAMPLE: {unknown}"
    for name, source in document.sections.items():
        if _CLAIMING.match(name) and name not in document.needs:
            claims = [s for s in _SENTENCE.split(source) if _HISTORY.search(s)]
            yield from (f"`## {name}` claims without `needs`: {s!r}" for s in claims if "{" in s)


def _title_apart(name: str, source: str) -> str:
    return "\n\n".join(split_title(source)) if name.startswith("fix ") else source


def _front_matter(document: Document) -> Iterator[str]:
    if not document.title:
        yield "no title"
    if not 3 <= len(document.questions) <= 8:
        yield "not 3 to 8 questions"
    for link in document.see:
        if not link.get("title") or not link.get("url", "").startswith("https://"):
            yield f"`see` without title or https address: {dict(link)}"


def _section_form(name: str, source: str, tokens: list[Token]) -> Iterator[str]:
    if not _KNOWN.match(name):
        yield "no such section is ever shown"
    if not source:
        yield "empty"
    if name.startswith("fix "):
        title, _ = split_title(source)
        if not title or len(title) > 100 or title.startswith(("-", "```", "#")):
            yield "its first line is the title of the rewrite, at most 100 characters"
        elif title.endswith((".", "。")):
            yield "a title ends without a full stop"
    if name.startswith(_LISTS) and any(t.level == 0 and "list" not in t.type for t in tokens):
        yield "it is a bullet list and nothing else"
    if name.startswith("summary") and [t.type for t in tokens[3:]]:
        yield "it is one paragraph"


def _writing(tokens: list[Token], language: str) -> Iterator[str]:
    """Marks that Markdown did not take for markup, and slips of Chinese and Japanese typing."""
    text = "\n".join(_prose(t) for t in tokens if t.children)
    if "**" in text or "`" in text:
        yield f"literal {'**' if '**' in text else '`'} (put spaces outside the marks)"
    if language == "en":
        return
    if text and not any(map(is_cjk, text)):
        yield "not translated"
    marks = (("half-width mark", _HALF_WIDTH), ("space within CJK", _SPACED), ("no space", _GLUED))
    for what, pattern in marks:
        slip = pattern.search(text)
        if slip:
            yield f"{what}: {text[max(slip.start() - 6, 0) : slip.end() + 6]!r}"
    yield from other_terms(text, language)
    if language == "zh" and _KANA.search(text):
        yield "kana in a Chinese text"
    blunt = _BLUNT.search(_BRACKETS.sub("", text)) if language == "ja" else None
    if blunt:
        yield f"not polite: {blunt.string[max(blunt.start() - 6, 0) : blunt.end()]!r}"


def _prose(token: Token) -> str:
    """The text of an inline token; code counts as one Latin letter."""
    return "".join(
        "x" if t.type == "code_inline" else t.content for t in joined_lines(token.children or ())
    )


# -- against the English text -------------------------------------------------------------


def _against(document: Document, english: Document) -> Iterator[str]:
    if list(document.sections) != list(english.sections):
        yield f"sections {list(document.sections)} instead of {list(english.sections)}"
        return
    if document.see and [s.get("url") for s in document.see] != [s.get("url") for s in english.see]:
        yield "its `see` leads elsewhere than that of en.md"
    for name, source in document.sections.items():
        mine, theirs = parser().parse(source), parser().parse(english.sections[name])
        for what, parts in (
            ("placeholders", placeholders),
            ("inline code", _code),
            ("code", _fences),
        ):
            ours, wanted = parts(mine), parts(theirs)
            if ours != wanted:
                odd = sorted(ours.symmetric_difference(wanted))
                yield f"`## {name}`: {what} differ from en.md: {odd}"


def _code(tokens: list[Token]) -> set[str]:
    return {c.content for t in tokens for c in t.children or () if c.type == "code_inline"}


def _fences(tokens: list[Token]) -> set[str]:
    """Fenced code without its comments, which are translated; claims are not."""
    code = (t.content for t in tokens if t.type == "fence")
    return {"\n".join(_COMMENT.sub("", line).rstrip() for line in c.splitlines()) for c in code}
