"""The hook on the output's tensor, or an input whose gradient is asked for."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.hook_on_output import hook_on_output
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .diagnose import Details


def _on_output(site: Site[Details]) -> Edits | None:
    hook = site.details.hook
    if hook is None or not hook.looks:
        return None
    return hook_on_output(site.program, hook.place, hook.module, hook.hook)


def _asked_for(site: Site[Details]) -> Edits | None:
    """`net(x)` -> `net(x.requires_grad_())`"""
    at, node = site.details.batch, node_at(site.program, site.details.batch)
    if at is None or node is None or site.details.hook is None:
        return None
    code = code_of(site.program, at, node)
    return expression_replaced(site.program, at, f"{code}.requires_grad_()")


propose: Propose[Details] = by_table(
    Fix("tensor_hook", _on_output),
    Fix("ask_input", _asked_for),
)
