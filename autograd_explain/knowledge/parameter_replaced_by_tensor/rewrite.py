"""New values for the parameter that is there, or a new parameter."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details

_COPIED = "with {torch}.no_grad():\n    {target}.copy_({value})\n"
_NEW = "{target} = {torch.nn.Parameter}({value})"


def _stored(site: Site[Details]) -> Edits | None:
    target, value = site.details.target, site.details.value
    code = _COPIED if site.details.held else _NEW
    if "\n" in value and not site.details.held:
        return None
    return site.instead(code, target=target, value=value)


propose: Propose[Details] = by_table(
    Fix("copy", _stored, when=lambda d: d.held),
    Fix("parameter", _stored, when=lambda d: not d.held),
)
