"""The result under the name of the buffer."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_removed
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("assign", at_place(out_of_place), when=lambda d: d.alone and d.plain),
    Fix("assign", at_place(keyword_removed, "out"), when=lambda d: not d.alone),
)
