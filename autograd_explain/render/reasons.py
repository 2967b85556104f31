"""Why a rewrite's outcome is what it is, and the remarks under a report, in three languages.

Keys are what `model.Reason` carries; a value that a reason does not bring drops the sentence or
the bracketed part that names it (see `labels`).
"""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, tuple[str, str, str]] = {
    # outcomes
    "agrees": (
        "the gradients equal the reference[ ({names})][; largest relative error {worst}]",
        "勾配が参照値と一致[（{names}）][、最大相対誤差 {worst}]",
        "梯度与参考值一致[（{names}）][，最大相对误差 {worst}]",
    ),
    "runs": ("to the end, without an error", "エラーなしで最後まで", "运行到底，没有报错"),
    "no_reference": (
        "there is no reference to compare the gradients with",
        "勾配を比べる参照値がない",
        "没有可供比较梯度的参考值",
    ),
    "differs": (
        "the gradients are not those of the reference[ ({names})]",
        "勾配が参照値と一致しない[（{names}）]",
        "梯度与参考值不一致[（{names}）]",
    ),
    "fails_with": ("it stops with[ `{error}`]", "[`{error}` ]で停止", "[`{error}` ]导致运行中止"),
    "not_checked": (
        "`%%autograd_check` would try it",
        "`%%autograd_check` で検証できます",
        "可用 `%%autograd_check` 验证",
    ),
    "budget": (
        "it did not end within the time allowed[ ({seconds} s)]",
        "制限時間[（{seconds} 秒）]内に終わらなかった",
        "未能在限定时间[（{seconds} 秒）]内运行完",
    ),
    "memory": (
        "too little memory for a second process",
        "別プロセスに必要なメモリが足りない",
        "内存不足以启动另一个进程",
    ),
    "needs_network": (
        "the program uses the network[ (`{what}`)]",
        "プログラムがネットワークを使う[（`{what}`）]",
        "程序会访问网络[（`{what}`）]",
    ),
    "needs_file": (
        "the program writes files[ (`{what}`)]",
        "プログラムがファイルに書き込む[（`{what}`）]",
        "程序会写入文件[（`{what}`）]",
    ),
    "needs_subprocess": (
        "the program starts other programs[ (`{what}`)]",
        "プログラムが別のプロセスを起動する[（`{what}`）]",
        "程序会启动其他进程[（`{what}`）]",
    ),
    "needs_input": (
        "the program waits for input",
        "プログラムが入力を待つ",
        "程序需要等待输入",
    ),
    "cuda": (
        "CUDA is in use, and a copy of this process cannot use it",
        "CUDA 使用中のため、複製したプロセスでは実行できない",
        "正在使用 CUDA，复制出的进程无法使用它",
    ),
    "not_replayable": (
        "the cells cannot be replayed here[ ({what})]",
        "ここではセルを再実行できない[（{what}）]",
        "此处无法重放这些单元格[（{what}）]",
    ),
    "interrupted": ("interrupted", "中断された", "已中断"),
    "show_only": (
        "it was not meant to run as it is",
        "そのまま実行するためのものではない",
        "并非可直接运行的代码",
    ),
    "crashed": (
        "the process that tried it ended unexpectedly[ ({what})]",
        "検証用プロセスが異常終了した[（{what}）]",
        "用于验证的进程意外终止[（{what}）]",
    ),
    # remarks under a report
    "recorded_next": (
        "The next run of this cell will be recorded, so that the lines are observed.",
        "次にこのセルを実行すると記録が行われ、各行が観測結果として示されます。",
        "下次运行该单元格时会自动记录，各行将来自实际观测。",
    ),
    "nothing_wrong": (
        "autograd_check: nothing wrong[; watched {writes} writes and {saves} saved values]",
        "autograd_check：問題なし[（書き込み {writes} 件、保存された値 {saves} 件を監視）]",
        "autograd_check：没有发现问题[（监视了 {writes} 次写入、{saves} 个保存的值）]",
    ),
    "not_watched": (
        "Not watched[: {what}].",
        "監視の対象外[：{what}]。",
        "未监视[：{what}]。",
    ),
    "own_failure": (
        "autograd_explain could not explain this error[ ({error})][; {how} shows why].",
        "autograd_explain はこのエラーを説明できませんでした[（{error}）]。[{how} で確認できます]",
        "autograd_explain 未能解释这个错误[（{error}）]。[{how} 可查看原因。]",
    ),
}
