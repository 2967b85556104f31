# %%
import torch


@torch.library.custom_op("notes_case::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3
# %%
w = torch.ones(3, requires_grad=True)
cube(w).sum().backward()
