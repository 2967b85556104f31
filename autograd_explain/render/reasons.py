"""Why a rewrite's outcome is what it is, and the remarks under a report, in three languages.

Keys are what `model.Reason` carries; a value that a reason does not bring drops the sentence or
the bracketed part that names it (see `labels`).
"""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, tuple[str, str, str]] = {
    # outcomes
    "agrees": (
        "it runs, with the reference's gradients[ ({names})][; largest relative error {worst}]",
        "実行でき、勾配が参照値と一致[（{names}）][、最大相対誤差 {worst}]",
        "可以运行，梯度与参考值一致[（{names}）][，最大相对误差 {worst}]",
    ),
    "runs": ("it runs to the end", "最後まで実行できる", "可以运行到底"),
    "no_reference": (
        "it runs; there is no reference to compare the gradients with",
        "実行できるが、勾配を比べる参照値がない",
        "可以运行，但没有可供比较梯度的参考值",
    ),
    "differs": (
        "it runs, but its gradients differ from the reference[: {names}]",
        "実行できるが、勾配が参照値と異なる[：{names}]",
        "可以运行，但梯度与参考值不同[：{names}]",
    ),
    "fails_with": ("it stops with[ `{error}`]", "[`{error}` ]で停止する", "运行中止[：`{error}`]"),
    "not_checked": (
        "not run; `%%autograd_check` would try it",
        "未実行。`%%autograd_check` で検証できる",
        "尚未运行；`%%autograd_check` 可以验证它",
    ),
    "budget": (
        "not run to the end within the budget[ of {seconds} s]",
        "制限時間[（{seconds} 秒）]内に終わらなかった",
        "未能在限定时间[（{seconds} 秒）]内运行完",
    ),
    "memory": (
        "not run: too little memory for a second process",
        "未実行：別プロセスに必要なメモリが足りない",
        "未运行：内存不足以启动另一个进程",
    ),
    "needs_network": (
        "not run: the program uses the network[ (`{what}`)]",
        "未実行：プログラムがネットワークを使う[（`{what}`）]",
        "未运行：程序会访问网络[（`{what}`）]",
    ),
    "needs_file": (
        "not run: the program writes files[ (`{what}`)]",
        "未実行：プログラムがファイルに書き込む[（`{what}`）]",
        "未运行：程序会写入文件[（`{what}`）]",
    ),
    "needs_subprocess": (
        "not run: the program starts other programs[ (`{what}`)]",
        "未実行：プログラムが別のプロセスを起動する[（`{what}`）]",
        "未运行：程序会启动其他进程[（`{what}`）]",
    ),
    "needs_input": (
        "not run: the program waits for input",
        "未実行：プログラムが入力を待つ",
        "未运行：程序需要等待输入",
    ),
    "cuda": (
        "not run: CUDA is in use, and a copy of this process could not use it",
        "未実行：CUDA 使用中のため、複製したプロセスでは実行できない",
        "未运行：正在使用 CUDA，复制出的进程无法使用它",
    ),
    "not_replayable": (
        "not run: the cells cannot be replayed here[ ({what})]",
        "未実行：ここではセルを再実行できない[（{what}）]",
        "未运行：此处无法重放这些单元格[（{what}）]",
    ),
    "interrupted": ("interrupted", "中断された", "已中断"),
    "show_only": (
        "a sketch: it was not meant to run as it is",
        "参考例のため実行していない",
        "仅为示意，未运行",
    ),
    "crashed": (
        "the process that tried it ended unexpectedly[ ({what})]",
        "検証用プロセスが異常終了した[（{what}）]",
        "用于验证的进程意外终止[（{what}）]",
    ),
    # remarks under a report
    "recorded_next": (
        "The next run of this cell will be recorded, so that the lines are observed.",
        "次にこのセルを実行するときは記録され、各行が観測結果として示される。",
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
        "autograd_explain はこのエラーを説明できなかった[（{error}）]。[{how} で確認できます。]",
        "autograd_explain 未能解释这个错误[（{error}）]。[{how} 可查看原因。]",
    ),
}
