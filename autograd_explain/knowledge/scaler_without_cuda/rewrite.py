"""Switch the scaler on where CUDA is."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[object] = by_table(
    Fix("enabled", lambda s: s.given("enabled", "{torch}.cuda.is_available()"))
)
