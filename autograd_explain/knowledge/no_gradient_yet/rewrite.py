"""Reset to None instead of zeros; read the gradient before it is cleared."""

from itertools import islice

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.uncut import joined_at

from .diagnose import Details, Why
from .own_gradient import parameters_themselves, read_of_leaf, undetached

#: The first of them that can be made says it all.
_of_alias: Propose[Details] = by_table(
    Fix("parameters", at_place(parameters_themselves)),
    Fix("read_leaf", lambda s: read_of_leaf(s.program, s.details.read, s.details.leaf)),
    Fix("undetached", lambda s: undetached(s.program, s.details.read, s.place)),
)
propose: Propose[Details] = by_table(
    lambda s: islice(_of_alias(s.finding, s.program), 1) if s.details.why is Why.ALIAS else (),
    Fix(
        "reset",
        lambda s: s.instead("{read}.grad = None", read=s.details.read),
        when=lambda d: d.why is Why.ZEROED,
    ),
    # `nn.Parameter(w - lr * g)` -> `w - lr * g`
    Fix("value_itself", at_place(joined_at), when=lambda d: d.why is Why.NEW_LEAF, changes=True),
    Fix(
        "clear_later",
        lambda s: move_after(s.program, s.place, s.details.read),
        when=lambda d: d.why is Why.CLEARED,
    ),
)
