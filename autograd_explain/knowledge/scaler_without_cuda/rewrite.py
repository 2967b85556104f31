"""Switch the scaler on where CUDA is."""

from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.call_edits import keyword_set


def _enabled(site: Site[object]) -> Edits | None:
    torch = torch_at(site.program, site.place)
    if torch is None:
        return None
    return keyword_set(site.program, site.place, "enabled", f"{torch}.cuda.is_available()")


propose: Propose[object] = by_table(Fix("enabled", _enabled))
