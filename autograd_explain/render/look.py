"""Tensors and graphs between two cells, for `%autograd_inspect` and `%autograd_graph`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from .labels import Words, phrase, source
from .labels import label as report_label
from .labels import word as report_word
from .look_content import LookContent, Picture
from .rails import Rail, rails_of
from .rows import Row, row_at
from .shown import Shown
from .texts import NOTHING, Passage
from .texts import line as text_line

if TYPE_CHECKING:
    from rich.text import Text

    from ..inspect.live.condense import GraphRow, Operation, Overwritten
    from ..inspect.live.graph_report import GraphReport
    from ..inspect.live.memory import Memory, Sharer
    from ..inspect.live.tensor_report import TensorReport
    from ..model import Certainty

_WIDEST = 12  #: lanes beside a whole graph
_MOST_NAMES = 4
_LEAF = "AccumulateGrad"
#: A sentence in Markdown, and what its placeholders stand for.
Part: TypeAlias = "tuple[str, dict[str, str]]"

_WORDS: Words = {
    # a tensor
    "tensor": ("tensor", "テンソル", "张量"),
    "type": ("type", "型", "类型"),
    "autograd": ("to autograd", "autograd での扱い", "对 autograd 而言"),
    "gradient": (".grad", ".grad", ".grad"),
    "counter": ("version", "バージョン", "版本"),
    "leaf": ("leaf", "リーフ", "叶子张量"),
    "computed": ("result of {node}", "{node} の結果", "{node} 的结果"),
    "unasked": (
        "view written in place: its grad_fn is not read, which could change it",
        "インプレースで書き込まれたビュー：読むと変わりうるため grad_fn は調べません",
        "被原地写入过的视图：读取可能改变它，因此不读 grad_fn",
    ),
    "requires": ("requires grad", "勾配が必要", "需要梯度"),
    "requires_not": ("requires no grad", "勾配は不要", "不需要梯度"),
    "version": ("version {version}", "バージョン {version}", "版本 {version}"),
    "inference": ("inference tensor", "推論テンソル", "推理张量"),
    "grad": (".grad of shape {shape}", ".grad の形状は {shape}", ".grad 的形状为 {shape}"),
    "no_grad": (".grad is None", ".grad は None", ".grad 为 None"),
    "view_of": ("view of {names}", "{names} のビュー", "{names} 的视图"),
    "unnamed": ("an unnamed tensor", "名前のないテンソル", "一个没有名字的张量"),
    # a memory
    "memory": (
        "One memory, {bytes} bytes: a write through one name can change what the others read",
        "同じメモリ（{bytes} バイト）：ある名前からの書き込みで、ほかの名前の値も変わりえます",
        "同一块内存（{bytes} 字节）：通过一个名字写入，其他名字的值也可能改变",
    ),
    "one_counter": (
        "All of them share a version counter.",
        "バージョンカウンタも、すべての名前で共有しています。",
        "它们也共用同一个版本计数器。",
    ),
    "counters": (
        "Names on one line share a version counter; a write through another is not counted there, "
        "and backward does not notice it.",
        "線でつながる名前はバージョンカウンタも共有します。つながらない名前からの書き込みは"
        "数えられず、backward でも検出されません。",
        "连在一条线上的名字共用版本计数器；通过其他名字写入时计数器不变，backward 也察觉不到。",
    ),
    "counters_inferred": (
        "Which share a counter is in part inferred from the source.",
        "カウンタの共有は、一部をソースコードから推定しています。",
        "哪些名字共用计数器，部分是根据源代码推断的。",
    ),
    "array": (
        "`{names}` NumPy array: it has no version counter",
        "`{names}` NumPy 配列：バージョンカウンタなし",
        "`{names}` NumPy 数组：没有版本计数器",
    ),
    "sharer": (
        "`{names}` version {version}",
        "`{names}` バージョン {version}",
        "`{names}` 版本 {version}",
    ),
    "sharer_view": ("view of `{base}`", "`{base}` のビュー", "`{base}` 的视图"),
    "sharer_unknown": (
        "not known which counter",
        "どのカウンタかは不明",
        "不确定是哪个计数器",
    ),
    # a graph
    "graph": (
        "The graph of `{name}`, time runs downwards; nodes: {nodes}, leaves: {leaves}",
        "`{name}` の計算グラフ（上から計算順）：ノード {nodes} 個、リーフ {leaves} 個",
        "`{name}` 的计算图（从上到下为计算顺序）：{nodes} 个节点、{leaves} 个叶子张量",
    ),
    "around": (
        "Only the surroundings of `{name}` are shown, up to a distance of {near}.",
        "`{name}` の周囲、距離 {near} までのノードだけを表示しています。",
        "只显示 `{name}` 周围距离不超过 {near} 的节点。",
    ),
    "all_freed": (
        "A backward has freed its saved values: another one through it fails.",
        "backward が保存値を解放済みです。ここをもう一度通る backward は失敗します。",
        "一次 backward 已释放它保存的值：再次 backward 会失败。",
    ),
    "some_freed": (
        "A backward has freed the saved values of {count} nodes: another one through them fails.",
        "{count} 個のノードの保存値は backward が解放済みです。そこを通る backward は失敗します。",
        "其中 {count} 个节点保存的值已被一次 backward 释放：再经过它们的 backward 会失败。",
    ),
    "all_overwritten": (
        "Saved values that were overwritten since: {count}. A backward through them fails.",
        "保存後に上書きされた値：{count} 個。そこを通る backward は失敗します。",
        "保存之后被覆盖的值：{count} 个。经过它们的 backward 会失败。",
    ),
    "no_graph": (
        "{name} has no graph: it is a leaf, or was computed without one",
        "{name} に計算グラフはありません（リーフか、グラフなしで計算された値です）",
        "{name} 没有计算图：它是叶子张量，或者计算时没有记录",
    ),
    "more": (
        "There is more: not all of the graph was looked at.",
        "続きがあります（計算グラフ全体は調べていません）。",
        "还有更多：没有查看整个计算图。",
    ),
    "overwritten": (
        "saved `{slot}` at version {saved}, now {now}",
        "`{slot}` をバージョン {saved} で保存、現在は {now}",
        "保存了版本 {saved} 的 `{slot}`，现在是版本 {now}",
    ),
    "written": ("written by `{line}`", "書き込み：`{line}`", "写入：`{line}`"),
    "times": ("{count} times", "{count} 回", "{count} 次"),
    "repeats": (
        "{count} times the next {rows} rows:",
        "次の {rows} 行を {count} 回：",
        "以下 {rows} 行共 {count} 次：",
    ),
    "left_out": ("… {count} more rows", "… ほか {count} 行", "… 还有 {count} 行"),
    "lines_unknown": (
        "Which lines made it is not known; after a run under `%%autograd_check` it is.",
        "どの行が作ったかは不明です。`%%autograd_check` の下で実行すれば分かります。",
        "不知道是哪些行创建的；在 `%%autograd_check` 下运行之后即可知道。",
    ),
    "uses": ("uses {rows}", "{rows} を使用", "使用 {rows}"),
    "tangled": (
        "Too many values are in use at once to be drawn: the rows say which rows they use.",
        "同時に使われる値が多いため線は省略し、各行が使う行を番号で示しています。",
        "同时使用的值太多，连线从略，改用行号说明各行使用了哪些行。",
    ),
}


def word(key: str, language: str, **values: object) -> str:
    """A phrase in the user's language with its values."""
    return phrase(_WORDS, key, language).format(**values)


def _label(key: str, language: str, **values: object) -> Passage:
    return text_line(phrase(_WORDS, key, language), {k: str(v) for k, v in values.items()})


def _part(key: str, language: str, **values: object) -> Part:
    return phrase(_WORDS, key, language), {k: str(v) for k, v in values.items()}


def _joined(parts: Iterable[Part], language: str) -> Passage:
    """Sentences in Markdown with their facts as one, parted as it is usual in this language."""
    said = NOTHING
    for text, facts in parts:
        between = source("semicolon", language) if said else ""
        more = text_line(between + text, facts)
        said = said.then(more) if said else more
    return said


class Looked(LookContent, Shown):
    """What a magic that looks at living objects shows; it holds none of them."""

    def to_html(self) -> str:
        from .html import look_html

        return look_html(self)

    def to_markdown(self) -> str:
        from .markdown import fence

        return fence(self.to_text(), "text") + "\n"

    def _draw(self, width: int) -> Text:
        from .text import looked

        return looked(self, width)


# -- a graph ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphPicture(Looked):
    """The graph behind a tensor; `certainty` is that of the lines, None where none is known."""

    report: GraphReport
    certainty: Certainty | None
    language: str = "en"

    @property
    def command(self) -> str:
        return f"%autograd_graph {self.report.name}"

    @property
    def pictures(self) -> tuple[Picture, ...]:
        report, language = self.report, self.language
        if not report.nodes:
            return (Picture(_label("no_graph", language, name=report.name), ()),)
        rails = rails_of(
            [None if row.repeats else n for n, row in enumerate(report.rows)],
            [row.inputs for row in report.rows],
            _WIDEST,
        )
        beside = rails or (Rail(None, (), (), (), 0),) * len(report.rows)
        rows = zip(self._rows(numbered=not rails), beside, strict=True)
        drawn = tuple(replace(row, rail=rail) for row, rail in rows)
        notes = tuple(self._notes(bool(rails)))
        counts = {"nodes": f"{report.nodes:,}", "leaves": f"{report.leaves:,}"}
        return (Picture(_label("graph", language, name=report.name, **counts), drawn, notes),)

    def _rows(self, numbered: bool) -> Iterator[Row]:
        before = None
        for number, row in enumerate(self.report.rows, 1):
            # A line's further rows stand under it without repeating it.
            known = row.place is not None and row.place.line_id == before
            parts = _told(row, self.language)
            if numbered:  # too many values are in use at once to be drawn
                parts = _with_numbers(parts, number, row, self.language)
            shown = _row_of(replace(row, place=None) if known else row, parts, self.language)
            if row.operations and row.place is None and self.certainty is not None:
                shown = replace(shown, certainty=report_word("place_unknown", self.language))
            yield shown
            before = None if row.place is None else row.place.line_id

    def _notes(self, drawn: bool) -> Iterator[Passage]:
        report, language = self.report, self.language
        if report.overwritten:
            yield _label("all_overwritten", language, count=report.overwritten)
        if report.freed:
            partly = any(row.freed for row in report.rows)
            key = "some_freed" if partly else "all_freed"
            yield _label(key, language, count=f"{report.freed:,}")
        if report.around:
            yield _label("around", language, name=report.around, near=report.near)
        if not report.complete:
            yield _label("more", language)
        if not drawn:
            yield _label("tangled", language)
        if self.certainty is None:
            yield _label("lines_unknown", language)
        else:
            yield report_label(f"lines_{self.certainty.value}", language)


def _told(row: GraphRow, language: str) -> list[Part]:
    """What a row says."""
    if row.left_out:
        return [_part("left_out", language, count=f"{row.left_out:,}")]
    if row.repeats:
        return [_part("repeats", language, count=f"{row.times:,}", rows=row.repeats)]
    return list(_facts(row, language))


def _with_numbers(parts: list[Part], number: int, row: GraphRow, language: str) -> list[Part]:
    (text, facts), *rest = parts
    first = "{number}. " + text, {**facts, "number": str(number)}
    used = ", ".join(_ranges([i + 1 for i in row.inputs]))
    return [first, *rest, *([_part("uses", language, rows=used)] if used else [])]


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """`1–4`, `7` of 1, 2, 3, 4, 7."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    yield from (f"{a}–{b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True))


def _row_of(row: GraphRow, parts: Iterable[Part], language: str) -> Row:
    tone = "needed" if row.overwritten else "other" if row.asked else "step"
    told = _joined(parts, language)
    if row.place is None:
        return _unplaced(told, tone, language)
    return replace(row_at(row.place, told, tone, language), start=0, end=0)


def _unplaced(told: Passage, tone: str, language: str) -> Row:
    return replace(row_at(None, told, tone, language), certainty="")


def _facts(row: GraphRow, language: str) -> Iterator[Part]:
    line = "" if row.place is None else row.place.source
    names = ", ".join(row.leaves[:_MOST_NAMES]) + (" …" if row.leaves[_MOST_NAMES:] else "")
    if row.operations and row.operations[0].name != _LEAF:
        chain = " → ".join(_operation(operation, line) for operation in row.operations)
        yield "`{chain}`", {"chain": chain}
    if names:
        yield source("path_leaves", language), {"leaves": names}
    if row.times > 1:
        yield _part("times", language, count=f"{row.times:,}")
    if row.freed:
        yield source("path_freed", language), {}
    for wrong in row.overwritten:
        yield from _wrong(wrong, language)


def _operation(operation: Operation, line: str) -> str:
    """An operation, and what its result is called where its line does not say so itself."""
    said = re.match(r"([\w.\[\]'\", ]+?)\s*[^=\w\s]*=(?!=)", line)
    told = [name for name in operation.results if said is None or name != said[1]]
    return f"{operation.name} ({', '.join(told[:2])})" if told else operation.name


def _wrong(wrong: Overwritten, language: str) -> Iterator[Part]:
    yield _part("overwritten", language, slot=wrong.slot, saved=wrong.saved, now=wrong.now)
    if wrong.writers:
        yield _part("written", language, line=wrong.writers[-1].source)


# -- tensors ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorTable(Looked):
    """Some tensors, and the memory that others share with them."""

    reports: tuple[TensorReport, ...]
    shared: tuple[Memory, ...] = ()
    language: str = "en"

    @property
    def command(self) -> str:
        return f"%autograd_inspect {' '.join(r.name for r in self.reports)}"

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        keys = ("tensor", "type", "autograd", "counter", "gradient")
        heads = tuple(word(key, self.language) for key in keys)
        return (heads, *(_cells(report, self.language) for report in self.reports))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        drawn = [_memory(memory, self.language) for memory in self.shared]
        apart = [n for n, memory in enumerate(self.shared) if not _has_one_counter(memory)]
        for number in apart[-1:]:  # what the lines mean is said once
            notes = (_label("counters", self.language), *drawn[number].notes)
            drawn[number] = replace(drawn[number], notes=notes)
        return tuple(drawn)

    @property
    def lines(self) -> tuple[str, ...]:
        found = (_tensor_lines(report, self.language) for report in self.reports)
        return tuple(line for lines in found for line in lines)


def _cells(tensor: TensorReport, language: str) -> tuple[str, ...]:
    version = word("inference", language) if tensor.version is None else str(tensor.version)
    no_grad = "None" if tensor.is_leaf and tensor.requires_grad else ""
    said = (_origin(tensor, language), _requires(tensor, language), _view(tensor, language))
    about = " · ".join(filter(None, said))
    return tensor.name, _type(tensor), about, version, tensor.grad or no_grad


def _tensor_lines(tensor: TensorReport, language: str) -> Iterator[str]:
    yield f"{tensor.name}: {_type(tensor)}"
    yield "  " + " · ".join((_origin(tensor, language), *_state(tensor, language)))
    if tensor.view_of is not None:
        yield f"  {_view(tensor, language)}"


def _type(tensor: TensorReport) -> str:
    return f"{tensor.dtype} {tensor.shape} {tensor.device}"


def _view(tensor: TensorReport, language: str) -> str:
    if tensor.view_of is None:
        return ""
    names = ", ".join(tensor.view_of[:3]) or word("unnamed", language)
    return word("view_of", language, names=names)


def _origin(tensor: TensorReport, language: str) -> str:
    if tensor.is_leaf is None:
        return word("unasked", language)
    if tensor.grad_fn:
        return word("computed", language, node=tensor.grad_fn)
    return word("leaf", language)


def _requires(tensor: TensorReport, language: str) -> str:
    return word("requires" if tensor.requires_grad else "requires_not", language)


def _state(tensor: TensorReport, language: str) -> Iterator[str]:
    yield _requires(tensor, language)
    if tensor.version is None:
        yield word("inference", language)
    else:
        yield word("version", language, version=tensor.version)
    if tensor.grad is not None:
        yield word("grad", language, shape=tensor.grad)
    elif tensor.is_leaf and tensor.requires_grad:
        yield word("no_grad", language)


def _memory(memory: Memory, language: str) -> Picture:
    """The names in a memory; those on one lane share a version counter."""
    numbers = [sharer.counter for sharer in memory.sharers]
    width = 1 + max((n for n in numbers if n is not None), default=0)
    rows = []
    for at, sharer in enumerate(memory.sharers):
        told = _joined(_sharer(sharer, language), language)
        rail = Rail(sharer.counter, _passing(numbers, at), _passing(numbers, at + 1), (), width)
        rows.append(replace(_unplaced(told, "step", language), rail=rail))
    notes = [_label("one_counter", language)] if _has_one_counter(memory) else []
    if memory.inferred:
        notes.append(_label("counters_inferred", language))
    return Picture(_label("memory", language, bytes=f"{memory.bytes:,}"), tuple(rows), tuple(notes))


def _has_one_counter(memory: Memory) -> bool:
    return {sharer.counter for sharer in memory.sharers} == {0}


def _passing(numbers: Sequence[int | None], at: int) -> tuple[int, ...]:
    """The lanes on which something stands both before a row and from it on."""
    both = set(numbers[:at]) & set(numbers[at:])
    return tuple(sorted(n for n in both if n is not None))


def _sharer(sharer: Sharer, language: str) -> Iterator[Part]:
    names = ", ".join(sharer.names[:_MOST_NAMES]) + (" …" if sharer.names[_MOST_NAMES:] else "")
    if sharer.is_array:
        yield _part("array", language, names=names)
        return
    version = "–" if sharer.version is None else sharer.version
    yield _part("sharer", language, names=names, version=version)
    if sharer.view_of:
        yield _part("sharer_view", language, base=sharer.view_of[0])
    if sharer.counter is None and sharer.version is not None:
        yield _part("sharer_unknown", language)
