"""Words for searching: how a text in English, Japanese or Chinese becomes comparable terms.

Latin words are cut to their stem; of Japanese and Chinese the Han characters become pairs and
katakana words stay whole.  Besides, the
words of autograd's own vocabulary become one concept whatever the language, so that 勾配, 梯度 and
"gradient" are the same term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

#: Concept -> how English, Japanese and Chinese write it.  Longer spellings are found first.
CONCEPTS = {
    "grad": "gradient gradients grad grads 勾配 梯度",
    "leaf": "leaf leaves リーフ 葉テンソル 葉 叶子节点 叶子 叶节点",
    "inplace": "inplace in-place in_place インプレース その場 就地 原地 原位",
    "write": "overwrite overwrites overwritten overwriting modify modified modifying change changed"
    " mutate mutated assign assigned assigning assignment write writes writing written"
    " 書き換え 上書き 代入 変更 書き込 書き 修改 改写 覆盖 赋值 写入 改动 更改",
    "backward": "backward backwards backpropagation backprop"
    " 逆伝播 誤差逆伝播 バックワード 反向传播 反传 反向",
    "forward": "forward 順伝播 フォワード 前向传播 前向 正向",
    "copy": "copy copies copied copying duplicate コピー 複製 复制 拷贝",
    "share": "share shares shared sharing 共有 共享",
    "memory": "memory メモリ 内存",
    "optimizer": "optimizer optimizers optimize optimise optim オプティマイザ 最適化 优化器 优化",
    "step": "step steps ステップ",
    "graph": "graph graphs 計算グラフ グラフ 计算图 图",
    "twice": "twice second again 2回 二回 ２回 二度 もう一度 再度 两次 二次 第二次 再次",
    "slice": "slice slices slicing sliced スライス 切片",
    "mask": "mask masks masked マスク 掩码",
    "index": "index indices indexing インデックス 添字 索引 下标",
    "warning": "warning warnings warn warns 警告",
    "difference": "difference differences different differ vs versus 違い 差 区别 差别 不同",
    "intermediate": "intermediate hidden activation activations"
    " 中間層 中間 中间层 中间变量 中间 隐藏层",
    "convert": "convert converts converted converting conversion cast casts casting"
    " 変換 キャスト 转换 转成 转为",
    "silent": "silent silently quietly 黙って こっそり 気づか 悄悄 静默 默默 不报错",
    "wrong": "wrong incorrect 間違 誤 错误地 变错 不对",
    "parameter": "parameter parameters param params weight weights"
    " パラメータ パラメーター 重み 参数 权重",
    "view": "view views ビュー 视图",
    "version": "version versions バージョン 版本",
    "counter": "counter カウンタ カウンター 计数器",
    "device": "device devices cuda gpu デバイス 设备",
    "detach": "detach detached detaching 切り離 分离",
    "none": "none missing 为空 なし",
    "loss": "loss losses 損失 损失",
    "hook": "hook hooks フック 钩子",
    "mode": "no_grad nograd set_grad_enabled inference_mode",
    "freed": "free freed release released 解放 释放",
    "retain": "retain retain_graph keep 保持 保留",
    "tensor": "tensor tensors テンソル 张量",
    "numpy": "numpy ndarray np",
    "update": "update updates updating 更新",
    "manual": "manual manually hand 手動 手で 手作業 手动 手工",
    "dtype": "dtype dtypes double half bfloat16 データ型 数据类型",
    "split": "split chunk unbind 分割 拆分",
    "save": "save saves saved saving 保存",
    "error": "error errors fail fails failed failing exception"
    " エラー 失敗 报错 出错 错误 例外 异常",
}

#: Concepts of which a question about autograd names one at least.
ANCHORS = frozenset(
    f"={name}"
    for name in (
        "grad leaf inplace backward forward optimizer graph intermediate view version detach hook"
        " mode freed retain"
    ).split()
)

#: Words that say nothing about the subject.
STOP = frozenset(
    """
    a an the is are was were be been am do does did i my me you your we our it its this that these
    those of to in on at by for from with as and or not no so if when while after before then than
    how why what which who whom where can could should would will may might must have has had get
    gets got there here into out up about any some all only just also very please help need want
    pytorch torch
    """.split()
)
_STOP_CJK = re.compile(
    r"(的|了|吗|呢|是|在|和|与|或|之|我|里|不能|无法|怎么|如何|为什么|什么|可以|时候|时|后|前|中|导致|得到|使用|用"
    r"|方法|必要|取得|获取|变成|呼|言|思|使|時|後|内)"
)
_NOTION = re.compile(r"\bwhat (?:is|are)\b|\bdifference\b|とは|違い|是什么|什么是|怎么回事|区别")
_LATIN = re.compile(r"[a-z_][a-z0-9_]*(?:-[a-z]+)*|\d+")
#: Words of a text without spaces: Han characters, katakana.  Hiragana is grammar.
_HAN = re.compile(r"[\u3400-\u9fff]+")
_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]{2,}")
_SPELLINGS = sorted(
    ((spelling, concept) for concept, all_ in CONCEPTS.items() for spelling in all_.split()),
    key=lambda pair: -len(pair[0]),
)
_LATIN_CONCEPT = {s: c for s, c in _SPELLINGS if s.isascii()}
_CJK_CONCEPT = {s: c for s, c in _SPELLINGS if not s.isascii()}
_CJK_CONCEPTS = re.compile("|".join(re.escape(s) for s in _CJK_CONCEPT))
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e")


def asks_for_a_notion(text: str) -> bool:
    """Whether the question is what something is, and not why it fails."""
    return bool(_NOTION.search(text.lower()))


def terms(text: str) -> Counter[str]:
    """The text's terms and how often they occur."""
    lowered = text.lower().replace("in place", "in-place")
    return Counter((*_latin(lowered), *_cjk(lowered)))


def _latin(text: str) -> Iterator[str]:
    for word in _LATIN.findall(text):
        concept = _LATIN_CONCEPT.get(word)
        if concept:
            yield f"={concept}"
        if word in STOP:
            continue
        if not concept:
            yield stem(word)
        parts = [p for p in re.split(r"[_-]", word) if p]
        if len(parts) > 1:
            yield word
            for part in parts:
                yield f"={_LATIN_CONCEPT[part]}" if part in _LATIN_CONCEPT else stem(part)


def _cjk(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for concept in _CJK_CONCEPTS.finditer(text):
        yield f"={_CJK_CONCEPT[concept.group()]}"
    rest = _CJK_CONCEPTS.sub(" ", text)
    yield from _KATAKANA.findall(rest)
    for run in _HAN.findall(_STOP_CJK.sub(" ", rest)):
        yield from (run[i : i + 2] for i in range(len(run) - 1))


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its commonest endings; short words stay as they are."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
