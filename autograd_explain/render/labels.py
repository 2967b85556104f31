"""Short words and lines of the screen in English, Japanese and Chinese.

A label is one line of Markdown with `{values}`.  A part in square brackets is shown only where
all its values are known: `saved[ at version {version}]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from .fill import PLACEHOLDER
from .reasons import REASONS
from .texts import LANGUAGES, Passage, line

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")

#: English, Japanese, Chinese.
Words: TypeAlias = Mapping[str, tuple[str, str, str]]

WORDS: Words = {
    # what happened at a line
    "created": ("created[ `{name}`]", "[`{name}` を]ここで作成", "在此创建[ `{name}`]"),
    "leaf_made": (
        "the leaf[ from which `{name}` is computed]",
        "[`{name}` の計算元となる]リーフ",
        "[计算 `{name}` 所用的]叶子张量",
    ),
    "alias": (
        "another name for the same memory",
        "同じメモリを指す別名",
        "同一块内存的另一个名字",
    ),
    "carried": ("still had a graph", "ここまではグラフがつながる", "到这里仍带有计算图"),
    "saved": (
        "saved[ `{name}`][ (version {version})][ for the gradient of `{op}`]",
        "保存[：`{name}`][（バージョン {version}）][、`{op}` の勾配計算に使用]",
        "保存了[ `{name}`][（版本 {version}）][，供 `{op}` 计算梯度]",
    ),
    "changed": (
        "overwrote it[: version {before} → {version}]",
        "上書き[：バージョン {before} → {version}]",
        "原地覆盖[：版本 {before} → {version}]",
    ),
    "changed_silently": (
        "overwrote it, and the version counter did not notice",
        "上書きしたが、バージョンカウンタでは検出されない",
        "原地覆盖，但版本计数器没有变化",
    ),
    "refused": (
        "torch refuses this in-place write",
        "このインプレース書き込みを torch が拒否",
        "torch 拒绝了这次原地写入",
    ),
    "cause": ("the cause", "原因はここ", "原因在这里"),
    "cause_too": ("part of the cause", "これも原因の一部", "也是原因之一"),
    "cause_failed": ("fails here", "ここで失敗", "在此处失败"),
    "cause_warned": ("the warning is about this", "警告の対象", "警告所指之处"),
    "detached": (
        "would cut the graph as well",
        "ここでも計算グラフが切れる",
        "此处同样会断开计算图",
    ),
    "freed": (
        "freed what the graph had saved",
        "計算グラフが保存していた値を解放",
        "释放了计算图保存的值",
    ),
    "failed": ("the error surfaces here", "エラーはここで発生", "错误在此处抛出"),
    "failed_warning": ("the warning is given here", "警告はここで発生", "警告在此处发出"),
    "failed_silent": (
        "the gradient is wrong from here on",
        "ここから勾配が誤る",
        "梯度从这里开始出错",
    ),
    "needs": (
        "needs version {saved}, finds version {current}",
        "バージョン {saved} が必要だが、実際は {current}",
        "需要版本 {saved}，实际是版本 {current}",
    ),
    "uses": (
        "uses the overwritten value",
        "上書き後の値を使用",
        "使用了被覆盖后的值",
    ),
    # the graph's lines
    "path": ("the gradient passes here", "勾配がここを通る", "梯度经过此处"),
    "path_leaves": ("leaves `{leaves}`", "リーフ `{leaves}`", "叶子张量 `{leaves}`"),
    "path_count": ("passed {count} times", "{count} 回通る", "经过 {count} 次"),
    "path_freed": ("its saved values are freed", "保存値は解放済み", "保存的值已释放"),
    "path_freed_first": (
        "the saved values of its earlier runs are freed",
        "以前の実行での保存値は解放済み",
        "先前运行时保存的值已释放",
    ),
    "semicolon": ("; ", "、", "；"),
    "called_from": ("called from {places}", "呼び出し元：{places}", "调用自：{places}"),
    "inside": (
        "[called from {places}; ]inside the library, {place}: `{source}`",
        "[呼び出し元：{places}；]ライブラリ内 {place}：`{source}`",
        "[调用自：{places}；]库内部 {place}：`{source}`",
    ),
    "file_changed": (
        "[{function}(): ]the file changed since it was loaded",
        "[{function}()：]読み込み後にファイルが変更されている",
        "[{function}()：]文件在加载之后被修改过",
    ),
    "place_unknown": ("line not found", "該当行は不明", "未找到对应的行"),
    "more_writes": (
        "… {count} more writes",
        "… ほか {count} 回の書き込み",
        "… 还有 {count} 次写入",
    ),
    "inferred": ("inferred", "推定", "推断"),
    "lines_observed": (
        "The lines were observed as they ran.",
        "行は実行中に記録されたものです。",
        "各行均为运行时的实际记录。",
    ),
    "lines_inferred": (
        "The lines are inferred from the source.",
        "行はソースコードから推定したものです。",
        "各行根据源代码推断得出。",
    ),
    # the timeline
    "version": ("version", "バージョン", "版本"),
    "stop_saved": ("saved", "保存", "保存"),
    "stop_changed": ("overwritten", "上書き", "被覆盖"),
    "stop_needed": ("needed", "必要", "需要"),
    # headings
    "rewrite": (
        "Rewrite[ {number} of {count}]",
        "修正案[ {number}/{count}]",
        "修改建议[ {number}/{count}]",
    ),
    "cause_heading": ("Why", "なぜ起きるか", "为什么"),
    "variant": ("Other cases", "そのほかの場合", "其他情形"),
    "warnings": (
        "These only silence it",
        "エラーを隠すだけの対処",
        "只是掩盖问题的做法",
    ),
    "check": ("What to look at", "確認すること", "检查要点"),
    "background": ("Background", "背景", "背景知识"),
    "see": ("See also", "参考", "参考资料"),
    "tensors": ("Tensors", "テンソル", "张量"),
    "message": ("PyTorch says", "PyTorch のメッセージ", "PyTorch 的报错信息"),
    "failing_program": ("A program that fails", "失敗するプログラム", "出错的程序"),
    "example_program": ("An example", "プログラム例", "示例程序"),
    "repaired_program": ("Repaired", "修正", "修改"),
    "other_rewrites": (
        "Other rewrites ({count})",
        "ほかの修正案（{count} 件）",
        "其他修改建议（{count} 个）",
    ),
    "about_rewrite": ("About this rewrite", "この修正案について", "关于此修改建议"),
    # what a report is about
    "kind_error": ("error", "エラー", "错误"),
    "kind_warning": ("warning", "警告", "警告"),
    "kind_silent": ("silent fault", "エラーの出ない誤り", "不报错的错误"),
    "kind_note": ("worth a look", "念のため確認", "值得留意"),
    # cells of a table
    "yes": ("yes", "はい", "是"),
    "no": ("no", "いいえ", "否"),
    # a rewrite's standing
    "outcome_verified": ("verified", "検証済み", "已验证"),
    "outcome_runs": ("runs", "実行できた", "可运行"),
    "outcome_fails": ("fails", "失敗", "失败"),
    "outcome_differs": ("differs", "結果が異なる", "结果不同"),
    "outcome_being_tried": ("being tried", "試行中", "正在尝试"),
    "outcome_not_tried": ("not tried", "未検証", "未验证"),
    "safety_changes_meaning": (
        "changes what is computed",
        "計算内容が変わる",
        "会改变计算内容",
    ),
    "safety_beyond_gradients": (
        "beyond the gradients it may do something else than before",
        "勾配以外では元のプログラムと動作が変わることがある",
        "除梯度外，程序的行为可能与原来不同",
    ),
    "safety_show_only": ("a sketch to adapt", "参考例（要調整）", "仅供参考，需自行调整"),
    "more_lines": (
        "… {count} more lines[: `%autograd_graph {root}`]",
        "… ほか {count} 行[：`%autograd_graph {root}`]",
        "… 还有 {count} 行[：`%autograd_graph {root}`]",
    ),
    "colon": (": ", "：", "："),
    # a tensor in words
    "leaf": ("leaf", "リーフ", "叶子张量"),
    "non_leaf": ("not a leaf", "非リーフ", "非叶子张量"),
    "requires_grad": ("requires grad", "requires_grad あり", "需要梯度"),
    # how to go on
    "hint_fix": (
        "`%autograd_fix` gives the changed cell, `%%autograd_fix` on top of it puts it in place",
        "`%autograd_fix` で変更後のセルを挿入、セルの先頭に `%%autograd_fix` でその場に反映",
        "`%autograd_fix` 给出修改后的单元格，在其首行写 `%%autograd_fix` 则原位替换",
    ),
    "hint_fix_cell": (
        "`%autograd_fix` gives the whole changed cell",
        "`%autograd_fix` で変更後のセル全体を挿入",
        "`%autograd_fix` 给出修改后的整个单元格",
    ),
    "hint_fix_file": (
        "`%autograd_fix` shows the change, `%autograd_fix --write` writes the file",
        "`%autograd_fix` で変更を表示、`%autograd_fix --write` でファイルに書き込み",
        "`%autograd_fix` 显示改动，`%autograd_fix --write` 写入文件",
    ),
    "hint_fix_second": (
        "rewrite 2: `%autograd_fix 2`",
        "修正案 2：`%autograd_fix 2`",
        "修改建议 2：`%autograd_fix 2`",
    ),
    "trying_line": (
        "autograd_explain: trying the rewrites ({count}) … Ctrl-C stops",
        "autograd_explain：修正案（{count} 件）を試行中… Ctrl-C で停止",
        "autograd_explain：正在尝试修改建议（{count} 个）… 按 Ctrl-C 停止",
    ),
    "trying_line_on": (
        "autograd_explain: {number} of {count} rewrites tried … Ctrl-C stops",
        "autograd_explain：修正案 {count} 件中 {number} 件を試行… Ctrl-C で停止",
        "autograd_explain：已尝试 {number}/{count} 个修改建议… 按 Ctrl-C 停止",
    ),
    "searching_line": (
        "autograd_explain: looking for other rewrites, {count} tried … Ctrl-C stops",
        "autograd_explain：ほかの修正案を探索中（{count} 件を試行）… Ctrl-C で停止",
        "autograd_explain：正在寻找其他修改建议（已尝试 {count} 个）… 按 Ctrl-C 停止",
    ),
    "whole_cell": ("The whole cell {cell}", "{cell} のセル全体", "{cell} 的完整内容"),
    "fix_instead_of": (
        "{cell} as changed by the rewrite: put this in its place",
        "修正案による {cell} の全文：元のセルをこれに置き換える",
        "{cell} 按修改建议改后的全文：请用它替换原单元格",
    ),
    "fix_write": (
        "`%autograd_fix {number} --write` writes this to {file}.",
        "`%autograd_fix {number} --write` で {file} に書き込みます。",
        "`%autograd_fix {number} --write` 将其写入 {file}。",
    ),
    "fix_written": (
        "{file} is written. What was imported from it is still the old code: reload it.",
        "{file} に書き込みました。読み込み済みのコードは古いままなので、再読み込みしてください。",
        "{file} 已写入。已导入的仍是旧代码，请重新加载。",
    ),
    "hint_explain_outside": (
        "`python -m autograd_explain explain {cause}` tells the whole story",
        "`python -m autograd_explain explain {cause}` で詳しい説明",
        "`python -m autograd_explain explain {cause}` 查看完整说明",
    ),
    "same_again": (
        "The same as before, {count} time[: its report stands under {cell}]",
        "前回と同じ内容です（{count} 回目）[。レポートは {cell} の下にあります]",
        "与之前相同（第 {count} 次）[，报告在 {cell} 下方]",
    ),
    "hint_again": (
        "`%autograd_explain` shows it again",
        "`%autograd_explain` で再表示",
        "`%autograd_explain` 可再次显示",
    ),
    "hint_explain": (
        "`%autograd_explain {cause}` tells the whole story",
        "`%autograd_explain {cause}` で詳しい説明",
        "`%autograd_explain {cause}` 查看完整说明",
    ),
}
LABELS = {**WORDS, **REASONS}


def source(key: str, language: str) -> str:
    """A label's Markdown with its `{values}`; an unknown key shows as itself."""
    return phrase(LABELS, key, language) if key in LABELS else key.replace("_", " ")


def phrase(words: Words, key: str, language: str) -> str:
    """An entry of a table of words; in English where the language is none of ours."""
    return words[key][LANGUAGES.index(language) if language in LANGUAGES else 0]


def label(key: str, language: str, **values: object) -> Passage:
    """A label with its values filled in."""
    facts = {k: str(v) for k, v in values.items() if v is not None and str(v)}
    text = _OPTIONAL.sub(lambda m: _if_known(m[1], facts), source(key, language))
    return line(text, facts)


def word(key: str, language: str, **values: object) -> str:
    """A label as plain text."""
    return label(key, language, **values).plain()


def _if_known(part: str, facts: Mapping[str, str]) -> str:
    return part if all(name in facts for name in PLACEHOLDER.findall(part)) else ""
