"""New values for the parameter that is there, or a new parameter."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.transforms.call_edits import statement_replaced

from .diagnose import Details


def _copied(site: Site[Details]) -> Edits | None:
    torch = torch_at(site.program, site.place)
    line = f"{site.details.target}.copy_({site.details.value})"
    block = f"with {torch}.no_grad():\n    {line}\n"
    return None if torch is None else statement_replaced(site.program, site.place, block)


def _new_parameter(site: Site[Details]) -> Edits | None:
    target, value = site.details.target, site.details.value
    parameter = imports_at(site.program, site.place).local("torch.nn.Parameter")
    line = f"{target} = {parameter}({value})\n"
    if parameter is None or "\n" in value:
        return None
    return statement_replaced(site.program, site.place, line)


propose: Propose[Details] = by_table(
    Fix("copy", _copied, when=lambda d: d.value != "" and d.held),
    Fix("parameter", _new_parameter, when=lambda d: d.value != "" and not d.held),
)
