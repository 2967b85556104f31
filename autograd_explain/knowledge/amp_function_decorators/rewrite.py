"""`torch.amp.custom_fwd(device_type=…)` instead of the decorators of `torch.cuda.amp`."""

import ast
from collections.abc import Iterator

from autograd_explain.program import Source
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

_OLD = ("torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd")


def _torch_amp(site: Site[object]) -> Edits | None:
    source = site.source
    return None if source is None else apply_patches(_renamed(source))


def _renamed(source: Source) -> Iterator[Patch]:
    """Every decorator of the cell or file: one warning comes for each."""
    decorators = [d for n in ast.walk(source.tree) for d in getattr(n, "decorator_list", ())]
    for decorator in decorators:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = ast.unparse(decorator if call is None else call.func)
        if name in _OLD and (call is None or not call.args):
            given = [] if call is None else [ast.unparse(k) for k in call.keywords]
            arguments = ", ".join([*given, "device_type='cuda'"])
            new = f"torch.amp.{name.rsplit('.', 1)[1]}({arguments})"
            yield Patch(source, source.span(decorator), new)


propose: Propose[object] = by_table(Fix("torch_amp", _torch_amp))
