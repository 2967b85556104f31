"""Let the module know its layers, or keep the parameters in a list that can be read twice."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.training_step import module_list, parameter_attribute

from .diagnose import Details, Why

propose: Propose[Details] = by_table(
    Fix(
        "module_list",
        lambda s: module_list(s.program, s.place, s.details.attribute),
        when=lambda d: d.why is Why.PLAIN_LIST,
    ),
    Fix(
        "parameter",
        lambda s: parameter_attribute(s.program, s.place, s.details.attribute),
        when=lambda d: d.why is Why.PLAIN_TENSOR,
    ),
    Fix("list", lambda s: s.replaced("list({x})"), when=lambda d: d.why is Why.USED_UP),
)
