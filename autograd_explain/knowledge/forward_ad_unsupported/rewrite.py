"""Attention by ordinary operations, which have a forward-mode derivative."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.grad_mode import with_plain_attention

propose: Propose[bool] = by_table(
    Fix("plain_attention", at_place(with_plain_attention), when=lambda fused: fused)
)
