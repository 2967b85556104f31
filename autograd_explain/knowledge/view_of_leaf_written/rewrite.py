"""The same repairs as for a write to the leaf itself."""

from autograd_explain.inspect.facts.leaf_write import LeafWriteDetails
from autograd_explain.knowledge.leaf_written.rewrite import propose as of_leaf
from autograd_explain.rewrite import Propose

propose: Propose[LeafWriteDetails] = of_leaf
