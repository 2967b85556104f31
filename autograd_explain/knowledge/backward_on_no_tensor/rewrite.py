"""Go backward from the tensor in the object, or from the sum of them; call the method."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

from .diagnose import Details


def _called(site: Site[Details]) -> Edits | None:
    maker = site.details.maker
    node = node_at(site.program, maker)
    if node is None or maker is None:
        return None
    code = f"{code_of(site.program, maker, node)}()"
    return apply_patches(replacement(site.program, maker, code))


propose: Propose[Details] = by_table(
    Fix(
        "part",
        lambda s: apply_patches(replacement(s.program, s.details.root, s.details.part)),
        when=lambda d: d.part != "",
        changes=True,
    ),
    Fix(
        "add",
        lambda s: apply_patches(replacement(s.program, s.details.root, f"sum({s.details.object})")),
        when=lambda d: d.all_losses and not d.part,
        changes=True,
    ),
    Fix("call", _called, changes=True),
)
