"""Tensors and graphs as lines of text, for `%autograd_inspect` and `%autograd_graph`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..inspect.live.tensor_report import NodeReport, TensorReport

_WORDS = {
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
    "grad": (".grad of shape {shape}", ".grad の形は {shape}", ".grad 的形状为 {shape}"),
    "no_grad": (".grad is None", ".grad は None", ".grad 为 None"),
    "view_of": ("view of {names}", "{names} のビュー", "{names} 的视图"),
    "unnamed": ("an unnamed tensor", "名前のないテンソル", "一个没有名字的张量"),
    "shares": (
        "shares memory with {names}",
        "{names} とメモリを共有",
        "与 {names} 共享内存",
    ),
    "again": ("shown above", "上に表示済み", "见上文"),
    "freed": ("saved tensors freed", "保存値は解放済み", "保存的张量已释放"),
    "overwritten": (
        "saved `{slot}` at version {saved}, now {now}",
        "`{slot}` をバージョン {saved} で保存、現在は {now}",
        "保存了版本 {saved} 的 `{slot}`，现在是版本 {now}",
    ),
    "more": ("… and more", "… 以下省略", "… 其余从略"),
    "no_graph": (
        "{name} has no graph: it is a leaf, or was computed without one",
        "{name} に計算グラフはありません（リーフか、グラフなしで計算された値です）",
        "{name} 没有计算图：它是叶子张量，或者计算时没有记录",
    ),
}
_COLUMN = {"en": 0, "ja": 1, "zh": 2}


def word(key: str, language: str, **values: object) -> str:
    """A phrase in the user's language with its values."""
    return _WORDS[key][_COLUMN.get(language, 0)].format(**values)


def tensor_text(tensor: TensorReport, language: str) -> str:
    """A tensor's facts: the first line what it is, the others what it has to do with."""
    head = f"{tensor.name}: {tensor.dtype} {tensor.shape} {tensor.device}"
    lines = [head, *(f"  {line}" for line in _tensor_lines(tensor, language))]
    return "\n".join(lines)


def _tensor_lines(tensor: TensorReport, language: str) -> Iterator[str]:
    yield " · ".join((_origin(tensor, language), *_state(tensor, language)))
    if tensor.view_of is not None:
        names = ", ".join(tensor.view_of[:3]) or word("unnamed", language)
        yield word("view_of", language, names=names)
    others = [n for n in tensor.shares_with if n not in (tensor.view_of or ())]
    if others:
        yield word("shares", language, names=", ".join(others[:5]))


def _origin(tensor: TensorReport, language: str) -> str:
    if tensor.is_leaf is None:
        return word("unasked", language)
    if tensor.grad_fn:
        return word("computed", language, node=tensor.grad_fn)
    return word("leaf", language)


def _state(tensor: TensorReport, language: str) -> Iterator[str]:
    yield word("requires" if tensor.requires_grad else "requires_not", language)
    if tensor.version is None:
        yield word("inference", language)
    else:
        yield word("version", language, version=tensor.version)
    if tensor.grad is not None:
        yield word("grad", language, shape=tensor.grad)
    elif tensor.is_leaf and tensor.requires_grad:
        yield word("no_grad", language)


def graph_text(name: str, nodes: list[NodeReport], complete: bool, language: str) -> str:
    """A graph as a tree, the root first."""
    if not nodes:
        return word("no_graph", language, name=name)
    lines = [_node_line(node, language) for node in nodes]
    if not complete:
        lines.append(word("more", language))
    return "\n".join(lines)


def _node_line(node: NodeReport, language: str) -> str:
    notes = []
    if node.again:
        notes.append(word("again", language))
    else:
        if node.freed:
            notes.append(word("freed", language))
        notes += (
            "✗ " + word("overwritten", language, slot=slot, saved=saved, now=now)
            for slot, saved, now in node.overwritten
        )
    shown = "".join(f"  {name}" for name in node.names)
    told = "".join(f"  ({note})" for note in notes)
    return f"{'  ' * node.depth}{node.node}{shown}{told}"
