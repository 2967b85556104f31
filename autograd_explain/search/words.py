"""The few words of answers and of the command line, in English, Japanese and Chinese."""

from __future__ import annotations

from ..render.labels import Words, phrase

WORDS: Words = {
    "recognised": (
        "PyTorch's message: {text}",
        "PyTorch のメッセージ：{text}",
        "PyTorch 的报错信息：{text}",
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
        "这是 autograd 的报错信息，但知识库中还没有解释它的条目。",
    ),
    "also": ("It may also be: {entries}", "ほかの可能性：{entries}", "也可能是：{entries}"),
    "nothing_fits": (
        "Nothing fits: this is neither an autograd message nor a question the knowledge base "
        "can answer. `autograd-explain list` shows what there is.",
        "該当する項目がありません。autograd のメッセージではなく、"
        "答えられる質問も見つかりませんでした。"
        "項目の一覧は `autograd-explain list` で表示できます。",
        "没有合适的条目：这既不是 autograd 的报错信息，也不是知识库能回答的问题。"
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
        "{name} 的 {lines} 行中没有 autograd 的报错信息。",
    ),
    "log_found": (
        "{count} autograd messages in {lines} lines of {name}:",
        "{name} の {lines} 行に autograd のメッセージが {count} 件あります：",
        "{name} 的 {lines} 行中有 {count} 条 autograd 报错信息：",
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
    "rank": ("rank {ranks}", "ランク {ranks}", "rank {ranks}"),
    "ranks": ("ranks {ranks}", "ランク {ranks}", "rank {ranks}"),
    "in_function": (
        "{place} in {function}()",
        "{place}（{function}()）",
        "{place}（{function}()）",
    ),
    "in_consequence": (
        "{ranks} failed in consequence: {text}",
        "巻き込まれて失敗：{ranks}（{text}）",
        "受其影响而失败：{ranks}（{text}）",
    ),
    "job_empty": (
        "No autograd message and no report in {name}.",
        "{name} に autograd のメッセージもレポートもありません。",
        "{name} 中没有 autograd 的报错信息，也没有报告。",
    ),
    "not_autograds": (
        "This is none of autograd's errors.",
        "autograd のエラーではありません。",
        "这不是 autograd 的错误。",
    ),
    "only_late": (
        "No rank tells what failed first.",
        "最初に何が失敗したのかは、どのランクの記録にもありません。",
        "没有任何 rank 记录最先出错的原因。",
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


def say(key: str, language: str, **values: object) -> str:
    """A line in the user's language with the values filled in."""
    return phrase(WORDS, key, language).format(**values)
