"""The site's own few words in English, Japanese and Chinese."""

from __future__ import annotations

from ..render.labels import Words, phrase

NAMES = {"en": "English", "ja": "日本語", "zh": "中文"}
WORDS: Words = {
    "tagline": (
        "What a PyTorch autograd error means, which line caused it, and what to write instead.",
        "PyTorch の autograd エラーの意味、原因の行、直し方を示します。",
        "说明 PyTorch 的 autograd 错误是什么意思、由哪一行引起、应当怎样修改。",
    ),
    "causes": ("Errors and warnings", "エラーと警告", "错误与警告"),
    "topics": ("Background topics", "基礎知識", "基础知识"),
    "messages": ("By message", "メッセージから探す", "按报错信息查找"),
    "symptoms": ("By symptom", "症状から探す", "按现象查找"),
    "guides": ("Guides", "ガイド（英語）", "指南（英文）"),
    "shown": (
        "What the notebook shows",
        "ノートブックに表示される内容",
        "笔记本中显示的内容",
    ),
    "shown_hint": (
        "This report was made by running the program below under `%%autograd_check`.",
        "下のプログラムを `%%autograd_check` で実行して得られた出力です。",
        "这是在 `%%autograd_check` 下运行下面的程序得到的输出。",
    ),
    "asked_as": ("People ask", "よくある質問", "常见提问"),
    "message": ("Message", "メッセージ", "报错信息"),
    "explained_by": ("Explained in", "説明", "说明"),
    "question": ("Question", "質問", "问题"),
    "home": ("Contents", "目次", "目录"),
}


def say(key: str, language: str) -> str:
    return phrase(WORDS, key, language)
