"""Switch the scaler on where CUDA is."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set

propose: Propose[object] = by_table(
    Fix("enabled", at_place(keyword_set, "enabled", "{torch}.cuda.is_available()"))
)
