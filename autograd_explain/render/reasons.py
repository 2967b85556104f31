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
    "agrees_as_it_ran": (
        "the gradients equal those of the program as it is[ ({names})]; it does not fail, so "
        "nothing tells whether they are right",
        "勾配は元のプログラムと一致[（{names}）]。元のプログラムは失敗しないため、正しい勾配かどうかは"
        "判断できない",
        "梯度与原程序一致[（{names}）]；原程序没有报错，无法判断这些梯度是否正确",
    ),
    "runs": ("to the end, without an error", "エラーなしで最後まで", "运行到底，没有报错"),
    "no_reference": (
        "there is no reference to compare the gradients with",
        "勾配を比べる参照値がない",
        "没有可供比较梯度的参考值",
    ),
    "reached": (
        "[`{names}` gets a gradient now]; there is no reference to compare it with",
        "[`{names}` に勾配が届くようになった]。比べる参照値はない",
        "[`{names}` 现在得到了梯度]；没有可供比较的参考值",
    ),
    "still_unreached": (
        "[`{names}` still gets no gradient]",
        "[`{names}` には依然として勾配が届かない]",
        "[`{names}` 仍然得不到梯度]",
    ),
    "only_zeros": (
        "[the loss follows `{names}`, and its gradient is 0]",
        "[損失は `{names}` とともに変わるのに、届く勾配は 0]",
        "[损失随 `{names}` 变化，得到的梯度却是 0]",
    ),
    "stepped": (
        "[an optimizer changes `{names}` now]; there is no reference to compare it with",
        "[オプティマイザが `{names}` を更新するようになった]。比べる参照値はない",
        "[优化器现在会更新 `{names}`]；没有可供比较的参考值",
    ),
    "still_unstepped": (
        "[no optimizer changes `{names}` yet]",
        "[`{names}` を更新するオプティマイザは依然としてない]",
        "[仍然没有优化器更新 `{names}`]",
    ),
    "still_nonfinite": (
        "[the gradient of `{names}` is still not finite]",
        "[`{names}` の勾配は依然として有限でない]",
        "[`{names}` 的梯度仍然不是有限值]",
    ),
    "finite": (
        "[the gradient of `{names}` is finite now]; there is no reference to compare it with",
        "[`{names}` の勾配が有限になった]。比べる参照値はない",
        "[`{names}` 的梯度现在是有限值]；没有可供比较的参考值",
    ),
    "still_zero": (
        "[the gradient of `{names}` is still 0]",
        "[`{names}` の勾配は依然として 0]",
        "[`{names}` 的梯度仍然是 0]",
    ),
    "nonzero": (
        "[the gradient of `{names}` is no longer 0]; there is no reference to compare it with",
        "[`{names}` の勾配が 0 でなくなった]。比べる参照値はない",
        "[`{names}` 的梯度不再是 0]；没有可供比较的参考值",
    ),
    # why running is all that could be shown: `no_reference_<why>`
    "no_reference_older_graph": (
        "backward went through a graph from before the run, whose saved values cannot be checked",
        "実行前に作られたグラフを backward が通り、そこに保存された値を確認できない",
        "backward 经过了运行之前建立的计算图，无法确认其中保存的值",
    ),
    "no_reference_overwritten_earlier": (
        "a value that an earlier cell saved was overwritten before the run",
        "前のセルが保存した値が、実行前に上書きされていた",
        "之前的单元格保存的值在运行前已被覆盖",
    ),
    "no_reference_recomputed": (
        "the program uses saved-tensor hooks of its own (reentrant checkpointing, for example)",
        "プログラム自身が saved_tensors_hooks を使っている（reentrant な checkpoint など）",
        "程序自己使用了 saved_tensors_hooks（例如 reentrant 的 checkpoint）",
    ),
    "no_reference_reference_failed": (
        "the original program gives no gradients to compare with[: `{error}`]",
        "元のプログラムからは比較する勾配が得られない[：`{error}`]",
        "原程序得不到可供比较的梯度[：`{error}`]",
    ),
    "no_reference_too_large": (
        "there are too many tensors to compare them all",
        "テンソルが多すぎて、すべては比較できない",
        "张量太多，无法全部比较",
    ),
    "no_reference_nondeterministic": (
        "two runs of the original program give different gradients",
        "元のプログラムを 2 回実行すると勾配が異なる",
        "原程序两次运行得到的梯度不同",
    ),
    "no_reference_overwritten_between": (
        "a value is overwritten between two backwards, so it is open which gradient is meant",
        "2 回の backward の間に値が上書きされ、どちらの勾配が意図されたものか決められない",
        "两次 backward 之间有值被覆盖，无法判断想要的是哪个梯度",
    ),
    "no_reference_ambiguous": (
        "it is open whether the program means the old or the new value",
        "書き込む前と後のどちらの値が意図されているか決められない",
        "无法判断程序想用的是覆盖前还是覆盖后的值",
    ),
    "no_reference_finite_differences": (
        "the gradients equal the reference, but finite differences of the loss do not confirm "
        "them: a value of the graph is written where autograd does not see it",
        "勾配は参照値と一致するが、損失の有限差分では確認できない。計算グラフ中の値に、"
        "autograd から見えない書き込みがある",
        "梯度与参考值一致，但损失的有限差分未能证实：计算图中有值以 autograd 看不到的方式被覆盖",
    ),
    "no_reference_unconfirmed": (
        "a second run did not confirm the gradients",
        "2 回目の実行では勾配を確認できなかった",
        "第二次运行未能确认梯度",
    ),
    "no_reference_gradient_missing": (
        "a gradient that the reference has is missing",
        "参照側にある勾配の一つが得られない",
        "缺少参考结果中的某个梯度",
    ),
    "no_reference_leftovers": (
        "the gradients agree where they are used, but others are left in `.grad`",
        "使われる勾配は一致するが、`.grad` に別の値が残る",
        "用到的梯度一致，但 `.grad` 中残留了其他值",
    ),
    "no_reference_no_gradient": (
        "the program leaves no gradient to compare",
        "比較できる勾配がプログラムに残らない",
        "程序没有留下可供比较的梯度",
    ),
    "no_reference_zero_gradients": (
        "all gradients are zero, which proves nothing",
        "すべての勾配がゼロで、比較しても確認にならない",
        "所有梯度都为零，比较没有意义",
    ),
    "differs": (
        "the gradients are not those of the reference[ ({names})]",
        "勾配が参照値と一致しない[（{names}）]",
        "梯度与参考值不一致[（{names}）]",
    ),
    "differs_as_it_ran": (
        "the gradients are not those of the program as it is[ ({names})]",
        "勾配が元のプログラムと一致しない[（{names}）]",
        "梯度与原程序不一致[（{names}）]",
    ),
    "differs_on_purpose": (
        "gradients other than the reference, which is the point of this choice[ ({names})]",
        "勾配は参照値と異なる。この案の狙いどおり[（{names}）]",
        "梯度与参考值不同，这正是该方案的用意[（{names}）]",
    ),
    "differs_for_caller": (
        "gradients other than those of the program as written, where the write also changes the "
        "caller's tensor[ ({names})]",
        "勾配は元のコードと異なる。元のコードでは書き込みが呼び出し元のテンソルにも及ぶため[（{names}）]",
        "梯度与原代码不同：原代码的写入也会改动调用方的张量[（{names}）]",
    ),
    "fails_with": (
        "it stops with[ `{error}`][ in {place}]",
        "[{place} の][ `{error}` ]で停止",
        "[在 {place} 处][因 `{error}` ]中止",
    ),
    "not_checked": (
        "`%%autograd_check` would try it",
        "`%%autograd_check` で検証できます",
        "可用 `%%autograd_check` 验证",
    ),
    "likely": (
        "often repairs such a failure; `%%autograd_check` would try it",
        "この種のエラーはこの修正で直ることが多い。`%%autograd_check` で検証できます",
        "常能修复此类错误；可用 `%%autograd_check` 验证",
    ),
    "not_checked_outside": (
        "`python -m autograd_explain run --check` would try it",
        "`python -m autograd_explain run --check` で検証できます",
        "可用 `python -m autograd_explain run --check` 验证",
    ),
    "in_test": (
        "such a test is not run again",
        "このようなテストは再実行しません",
        "这种测试不会重新运行",
    ),
    "not_checked_test": (
        "`pytest --autograd-check` would try it",
        "`pytest --autograd-check` で検証できます",
        "可用 `pytest --autograd-check` 验证",
    ),
    "made_before": (
        "what the test is given may have been made with the code that changes",
        "変更されるコードで作られた値がすでにテストに渡されている可能性がある",
        "传给测试的值可能是由将要改动的代码生成的",
    ),
    "other_report": (
        "of several reports on a cell, the rewrites of one are tried",
        "1 つのセルに複数のレポートがある場合、検証するのはそのうち 1 つの修正案",
        "一个单元格有多份报告时，只验证其中一份的修改建议",
    ),
    "elsewhere": (
        "the error was raised in another process",
        "エラーは別のプロセスで発生した",
        "错误是在另一个进程中抛出的",
    ),
    "verify_off_outside": (
        "`--verify` would have it tried",
        "`--verify` で検証を有効にできます",
        "可用 `--verify` 启用验证",
    ),
    "verify_off_rank": (
        "other ranks may have to take part; `--verify` tries what needs none of them",
        "ほかのランクの参加が必要かもしれない（不要なものは `--verify` で検証できます）",
        "可能需要其他 rank 参与（无需它们的可用 `--verify` 验证）",
    ),
    "verify_off": (
        "`%config AutogradExplain.verify = True` would have it tried",
        "`%config AutogradExplain.verify = True` で検証を有効にできます",
        "可用 `%config AutogradExplain.verify = True` 启用验证",
    ),
    "caught": (
        "rewrites are tried when the error ends its cell",
        "検証するのは、エラーでセルの実行が終わった場合",
        "只有错误使单元格中止时才会验证",
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
        "the program cannot be run again here[ ({what})]",
        "ここではプログラムを再実行できない[（{what}）]",
        "此处无法重新运行该程序[（{what}）]",
    ),
    "unnumbered": (
        "cells ran outside IPython's history and have no numbers of their own",
        "IPython の履歴に残らないセルがあり、番号で区別できない",
        "有单元格在 IPython 历史之外运行，没有各自的编号",
    ),
    "being_tried": (
        "all of them for at most {seconds} s",
        "全体で最大 {seconds} 秒",
        "全部最多 {seconds} 秒",
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
    "crossed": (
        "Raised in another process[ ({where})]; only its traceback is known here.",
        "別のプロセス[（{where}）]で発生したため、ここではトレースバックしか分かりません。",
        "错误在另一个进程[（{where}）]中抛出，这里只知道它的回溯。",
    ),
    "crossed_thread": (
        "Raised in another thread[ ({where})]; only its traceback is known here.",
        "別のスレッド[（{where}）]で発生したため、ここではトレースバックしか分かりません。",
        "错误在另一个线程[（{where}）]中抛出，这里只知道它的回溯。",
    ),
    "called_here": (
        "Called in this process instead (`num_workers=0`, or the function itself), "
        "the lines are told as well.",
        "このプロセスで呼び出せば（`num_workers=0`、または関数を直接）、原因の行も分かります。",
        "改在本进程中调用（`num_workers=0`，或直接调用该函数），就能指出出错的行。",
    ),
    "also_likely": (
        "By its message alone it may also be {causes}.",
        "メッセージだけからは {causes} の可能性もあります。",
        "仅凭报错信息来看，也可能是 {causes}。",
    ),
    "not_loaded": (
        "`%load_ext autograd_explain` brings these commands:",
        "次のコマンドは `%load_ext autograd_explain` の後に使えます。",
        "运行 `%load_ext autograd_explain` 后即可使用以下命令：",
    ),
    "recorded_next": (
        "Run the cell again to confirm these lines.",
        "このセルをもう一度実行すると、これらの行を実際の記録で確認できます。",
        "再次运行该单元格，即可用实际记录确认这些行。",
    ),
    "recorded_from": (
        "To confirm these lines: `%autograd_check on`, then run the cells again from {cell}.",
        "行を確認するには、`%autograd_check on` のあと {cell} から順に実行し直してください。",
        "若要确认这些行，请先运行 `%autograd_check on`，再从 {cell} 起重新运行各单元格。",
    ),
    "old_torch": (
        "autograd_explain: made for torch 2.10 and newer. torch {version} does not show what an "
        "operation has saved, so most overwritten tensors stay unfound.",
        "autograd_explain：対応しているのは torch 2.10 以降です。torch {version} では"
        "演算が保存した値を参照できないため、上書きされたテンソルの多くは特定できません。",
        "autograd_explain：支持 torch 2.10 及更新版本。torch {version} 不能查看运算保存的值，"
        "因此大多数被覆盖的张量无法找到。",
    ),
    "bound_since": (
        "autograd_explain: run {cell} again to have its error explained; cells after it have bound "
        "{names} anew.",
        "autograd_explain：{cell} のエラーの説明には、もう一度の実行が必要です。そのあとのセルで "
        "{names} に別の値が代入されています。",
        "autograd_explain：要解释 {cell} 的错误，请重新运行它；其后的单元格给 {names} 赋了新的值。",
    ),
    "nothing_wrong": (
        "autograd_check: nothing wrong[ (watched {nodes} recorded operations, {writes} writes)]",
        "autograd_check：問題なし[（記録された演算 {nodes} 件、書き込み {writes} 件を監視）]",
        "autograd_check：没有发现问题[（监视了 {nodes} 个被记录的运算、{writes} 次写入）]",
    ),
    "nothing_seen": (
        "autograd_check: nothing wrong as far as it could see[ (watched {nodes} recorded "
        "operations, {writes} writes)].",
        "autograd_check：確認できた範囲では問題なし[（記録された演算 {nodes} 件、書き込み {writes} "
        "件を監視）]。",
        "autograd_check：在能查看的范围内没有发现问题[（监视了 {nodes} 个被记录的运算、{writes} "
        "次写入）]。",
    ),
    "more_than": ("more than {count}", "{count} 超", "超过 {count}"),
    "worth_a_look": (
        "autograd_check: worth a look:",
        "autograd_check：念のため確認：",
        "autograd_check：值得留意：",
    ),
    "limit_local_model": (
        "A model that lived only inside a function could not be looked at afterwards (layers that "
        "it does not know, parameters that no optimizer updates).",
        "関数の中だけに存在したモデルは、終了後に調べられません（モデルに登録されていない層、"
        "オプティマイザが更新しないパラメータ）。",
        "只存在于函数内部的模型事后无法检查（未注册到模型的层、没有优化器更新的参数）。",
    ),
    "limit_saved_values": (
        "This torch does not show what the graph has saved, so values overwritten through `.data` "
        "or NumPy were not looked for.",
        "この torch では計算グラフの保存値を参照できないため、`.data` や NumPy による上書きは"
        "調べていません。",
        "此版本的 torch 无法查看计算图保存的值，因此没有检查经由 `.data` 或 NumPy 的写入。",
    ),
    "limit_graph_not_searched": (
        "Some graphs were too large, or came too often, to be searched for overwritten values.",
        "一部の計算グラフは大きすぎるか頻度が高すぎるため、上書きされた値を調べきれていません。",
        "部分计算图过大或过于频繁，未能全部检查其中被覆盖的值。",
    ),
    "limit_writes_forgotten": (
        "There were more writes through `.data` or NumPy than are remembered; what the forgotten "
        "ones did is not known.",
        "`.data` や NumPy による書き込みが保持できる数を超えたため、保持していない書き込みの影響は"
        "分かりません。",
        "经由 `.data` 或 NumPy 的写入超过了可保留的数量，未保留的写入有何影响不得而知。",
    ),
    "limit_values_sampled": (
        "Of large tensors only samples were compared to see whether values were put back.",
        "大きなテンソルの値が元に戻されたかどうかは、抜き取った一部の要素だけで比較しています。",
        "对于大张量，仅抽取部分元素来比较其值是否已复原。",
    ),
    "limit_values_unreadable": (
        "A tensor was written through `.data` whose values cannot be compared (a subclass, say); "
        "whether they were put back is not known.",
        "`.data` を通して書き込まれたテンソルの中に、値を比較できないもの（サブクラスなど）がある"
        "ため、元に戻されたかどうかは分かりません。",
        "有张量经由 `.data` 被写入，但无法比较其值（例如子类），是否已复原不得而知。",
    ),
    "limit_device_threads": (
        "Hooks and backward functions that run in a device's own thread were not watched.",
        "デバイス専用スレッドで実行されるフックや backward 関数は監視していません。",
        "在设备自身线程中运行的钩子和 backward 函数未被监视。",
    ),
    "limit_unexplained": (
        "Something was noticed that could not be explained once the cell had ended.",
        "検出した事象がありますが、セルの終了後には説明できませんでした。",
        "发现了一处异常，但单元格结束后已无法说明。",
    ),
    "limit_not_run_again": (
        "The code was not run once more, which would show whether its gradients lack something.",
        "勾配に欠けているものがないかを調べるための再実行は、行われていません。",
        "没有再次运行代码来查看梯度是否有缺失。",
    ),
    "limit_compiled": (
        "Code under torch.compile was not watched.",
        "torch.compile でコンパイルされた部分は監視していません。",
        "torch.compile 编译的部分未被监视。",
    ),
    "limit_compile_not_followed": (
        "Code under torch.compile could not be followed line by line.",
        "torch.compile でコンパイルされた部分は行単位で追跡できませんでした。",
        "torch.compile 编译的部分无法逐行跟踪。",
    ),
    "limit_traced": (
        "Code was not watched while torch.jit traced it.",
        "torch.jit がトレースしている間のコードは監視していません。",
        "torch.jit 追踪期间运行的代码未被监视。",
    ),
    "limit_mode_removed": (
        "The program took the recorder's mode off the stack; what followed was not watched.",
        "プログラムが記録用のモードを取り外したため、それ以降は監視していません。",
        "程序移除了记录用的 mode，此后的操作未被监视。",
    ),
    "limit_log_full": (
        "The log was full; its oldest entries were dropped.",
        "記録が上限に達したため、古い項目は破棄されました。",
        "记录已满，最早的条目已被丢弃。",
    ),
    "limit_rested": (
        "The same lines had run many times, and the recorder rested; what followed was not "
        "watched.",
        "同じ行だけが何度も繰り返されたため、途中で記録を止めました。それ以降は監視していません。",
        "相同的代码行已重复运行多次，记录器中途停止，此后的操作未被监视。",
    ),
    "limit_recorder_failed": (
        "The recorder stopped on an error of its own; what followed was not watched.",
        "記録機能が内部エラーで停止したため、それ以降は監視していません。",
        "记录器因自身错误而停止，此后的操作未被监视。",
    ),
    "own_failure": (
        "autograd_explain could not explain this error[ ({error})][; {how} shows why].",
        "autograd_explain はこのエラーを説明できませんでした[（{error}）]。"
        "[{how} で理由を確認できます。]",
        "autograd_explain 未能解释这个错误[（{error}）]。[{how} 可查看原因。]",
    ),
    # while rewrites are tried
    "trying": (
        "The rewrites ({count}) are being tried; interrupt the kernel to stop. Where this does not "
        "change, `%autograd_explain` shows the outcome.",
        "修正案（{count} 件）を試行しています。カーネルの割り込みで中断できます。"
        "表示が更新されない場合は `%autograd_explain` で結果を確認できます。",
        "正在尝试修改建议（{count} 个），中断内核即可停止。"
        "若此处不更新，请用 `%autograd_explain` 查看结果。",
    ),
    "trying_on": (
        "{number} of {count} rewrites tried; interrupt the kernel to stop.",
        "修正案 {count} 件中 {number} 件を試行しました。カーネルの割り込みで中断できます。",
        "已尝试 {number}/{count} 个修改建议，中断内核即可停止。",
    ),
    "searching": (
        "Looking for other rewrites: {count} tried so far; interrupt the kernel to stop.",
        "ほかの修正案を探しています（{count} 件を試行）。カーネルの割り込みで中断できます。",
        "正在寻找其他修改建议：已尝试 {count} 个，中断内核即可停止。",
    ),
}
