"""The few words of answers and of the command line, in English, Japanese and Chinese."""

from __future__ import annotations

WORDS = {
    "recognised": (
        "PyTorch's message: {text}",
        "PyTorch のメッセージ：{text}",
        "PyTorch 的信息：{text}",
    ),
    "wording": (
        " (as worded in torch {releases})",
        "（torch {releases} の文面）",
        "（torch {releases} 的措辞）",
    ),
    "values": ("Its values: {values}", "含まれる値：{values}", "其中的值：{values}"),
    "no_entry": (
        "An autograd message; no entry of the knowledge base explains it.",
        "autograd のメッセージですが、説明する項目がまだありません。",
        "这是 autograd 的信息，但知识库中还没有解释它的条目。",
    ),
    "also": ("It may also be: {entries}", "ほかの可能性：{entries}", "也可能是：{entries}"),
    "nothing_fits": (
        "Nothing fits: this is neither an autograd message nor a question the knowledge base "
        "can answer. `autograd-explain list` shows what there is.",
        "該当する項目がありません。autograd のメッセージではなく、"
        "答えられる質問も見つかりませんでした。"
        "項目の一覧は `autograd-explain list` で表示できます。",
        "没有合适的条目：这既不是 autograd 的信息，也不是知识库能回答的问题。"
        "用 `autograd-explain list` 可以查看所有条目。",
    ),
    "did_you_mean": (
        "There is no entry {asked}. Did you mean: {names}",
        "{asked} という項目はありません。近い項目：{names}",
        "没有条目 {asked}。相近的条目：{names}",
    ),
    "log_empty": (
        "No autograd message in {lines} lines of {name}.",
        "{name} の {lines} 行に autograd のメッセージはありません。",
        "{name} 的 {lines} 行中没有 autograd 的信息。",
    ),
    "log_found": (
        "{count} autograd messages in {lines} lines of {name}:",
        "{name} の {lines} 行に autograd のメッセージが {count} 件あります：",
        "{name} 的 {lines} 行中有 {count} 条 autograd 信息：",
    ),
    "log_place": (
        "{name}:{line} (byte {offset}), {count} in all",
        "{name}:{line}（バイト位置 {offset}）、計 {count} 回",
        "{name}:{line}（字节偏移 {offset}），共 {count} 次",
    ),
    "log_more": (
        "`autograd-explain explain {entry}` tells the whole story.",
        "詳しくは `autograd-explain explain {entry}`。",
        "完整说明：`autograd-explain explain {entry}`。",
    ),
    "stdin": ("standard input", "標準入力", "标准输入"),
    "check_clean": (
        "{count} folders, nothing wrong",
        "{count} 個のフォルダに問題はありません",
        "{count} 个文件夹都没有问题",
    ),
    "accepted": (
        "{path}: revision of en.md written",
        "{path}：en.md の版を記録しました",
        "{path}：已写入 en.md 的版本",
    ),
    "docs_written": (
        "{count} pages in {folder}",
        "{folder} に {count} ページ",
        "{folder} 中有 {count} 页",
    ),
}
_COLUMN = {"en": 0, "ja": 1, "zh": 2}


def say(key: str, language: str, **values: object) -> str:
    """A line in the user's language with the values filled in."""
    return WORDS[key][_COLUMN.get(language, 0)].format(**values)
