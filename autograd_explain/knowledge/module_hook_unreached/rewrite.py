"""The hook on the output's tensor, or an input whose gradient is asked for."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.hooks import hook_on_output

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("tensor_hook", lambda s: hook_on_output(s.program, s.details.hook)),
    # `net(x)` -> `net(x.requires_grad_())`
    Fix(
        "ask_input",
        lambda s: s.at(s.details.batch).called("requires_grad_"),
        when=lambda d: d.hook is not None,
    ),
)
