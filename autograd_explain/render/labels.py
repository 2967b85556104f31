"""Short words and lines of the screen in English, Japanese and Chinese.

A label is one line of Markdown with `{values}`.  A part in square brackets is shown only where
all its values are known: `saved[ at version {version}]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .fill import PLACEHOLDER
from .reasons import REASONS
from .texts import LANGUAGES, Passage, line

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")

WORDS: Mapping[str, tuple[str, str, str]] = {
    # what happened at a line
    "created": ("created[ `{name}`]", "[`{name}` を]ここで作成", "在此创建[ `{name}`]"),
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
        "上書きしたが、バージョンカウンタには現れない",
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
    "called_from": ("called from {places}", "呼び出し元：{places}", "调用自：{places}"),
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
    "outcome_not_tried": ("not tried", "未検証", "未验证"),
    "safety_changes_meaning": (
        "changes what is computed",
        "計算内容が変わる",
        "会改变计算内容",
    ),
    "safety_show_only": ("a sketch to adapt", "参考例（要調整）", "仅供参考，需自行调整"),
    "more_lines": ("… {count} more lines", "… ほか {count} 行", "… 还有 {count} 行"),
    "colon": (": ", "：", "："),
    # a tensor in words
    "leaf": ("leaf", "リーフ", "叶子张量"),
    "non_leaf": ("not a leaf", "非リーフ", "非叶子张量"),
    "requires_grad": ("requires grad", "requires_grad あり", "需要梯度"),
    # how to go on
    "hint_fix": (
        "`%autograd_fix` puts it in the next cell",
        "`%autograd_fix` で次のセルに挿入",
        "`%autograd_fix` 将其放入下一个单元格",
    ),
    "hint_fix_shows": (
        "`%autograd_fix` shows the change",
        "`%autograd_fix` で変更を表示",
        "`%autograd_fix` 显示改动",
    ),
    "hint_explain_outside": (
        "`python -m autograd_explain explain {cause}` tells the whole story",
        "`python -m autograd_explain explain {cause}` で詳しい説明",
        "`python -m autograd_explain explain {cause}` 查看完整说明",
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
    texts = LABELS.get(key)
    if texts is None:
        return key.replace("_", " ")
    return texts[LANGUAGES.index(language) if language in LANGUAGES else 0]


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
