"""The topics, which explain no message: found by name and by natural questions."""

from __future__ import annotations

import pytest

from autograd_explain.knowledge.entry import entries
from autograd_explain.search import lookup

TOPICS = ("leaf_tensors", "inplace_and_versions", "data_and_detach", "sharing", "copying_tensors")


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_found_by_its_name(name: str) -> None:
    assert entries()[name].patterns == ()
    for written in (name, name.replace("_", " "), name.upper().replace("_", "-")):
        answer = lookup(written)
        assert answer is not None and answer.id == name


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("what makes a tensor a leaf", "leaf_tensors"),
        ("リーフテンソルかどうかを確認したい", "leaf_tensors"),
        ("怎么判断一个张量是不是叶子", "leaf_tensors"),
        ("what counts as an in-place operation", "inplace_and_versions"),
        ("インプレース演算の一覧とバージョン", "inplace_and_versions"),
        ("哪些操作属于原地操作", "inplace_and_versions"),
        ("is .data the same as .detach()", "data_and_detach"),
        (".dataと.detach()はどちらを使うべき", "data_and_detach"),
        ("该用 .data 还是 .detach()", "data_and_detach"),
        ("does detach share memory with the tensor", "sharing"),
        ("detachするとメモリは共有されますか", "sharing"),
        ("clone 和 detach 的差别", "sharing"),
        ("what does torch.from_numpy share", "sharing"),
        ("how do I duplicate a tensor", "copying_tensors"),
        ("テンソルのコピーにはどの方法が速いか", "copying_tensors"),
        ("复制张量用哪种方法好", "copying_tensors"),
    ],
)
def test_a_topic_is_found_by_a_question(question: str, name: str) -> None:
    answer = lookup(question)
    assert answer is not None and answer.id == name
