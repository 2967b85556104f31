"""Each parameter in one group only."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details, Overlap


def _rest(site: Site[Details]) -> Edits | None:
    given = site.details
    outer, inner = (text.removesuffix(".parameters()") for text in (given.first, given.second))
    prefix = inner.removeprefix(f"{outer}.")
    rest = f'[p for n, p in {outer}.named_parameters() if not n.startswith("{prefix}.")]'
    return site.replaced(rest)


def _without(site: Site[Details]) -> Edits | None:
    without = f"[p for p in {{x}} if all(p is not q for q in {site.details.first})]"
    return site.at(site.details.refused).replaced(without)


propose: Propose[Details] = by_table(
    Fix(
        "unique",
        lambda s: s.replaced("list(dict.fromkeys({x}))"),
        when=lambda d: d.overlap is Overlap.SAME_LIST,
    ),
    Fix("rest", _rest, when=lambda d: d.overlap is Overlap.WITHIN, changes=True),
    Fix("without", _without, when=lambda d: d.overlap is Overlap.OTHER, changes=True),
)
