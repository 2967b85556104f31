"""The module's batch norms made to work without running statistics."""

from autograd_explain.model import What
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.transforms.call_edits import line_behind

from .diagnose import Details


def _patched(site: Site[Details]) -> Edits | None:
    place, model = site.details.made, site.details.model
    torch = torch_at(site.program, place)
    code = f"{torch}.func.replace_all_batch_norm_modules_({model})\n"
    return line_behind(site.program, place, code) if torch else None


propose: Propose[Details] = by_table(
    Fix("without_statistics", _patched, changes=True), at=What.CREATED
)
