"""Statements: assignments, blocks and loops."""

from __future__ import annotations

import ast
import copy

from .builder import located, shape
from .expressions import Expressions
from .operators import IN_PLACE

_NOTHING = ast.arguments([], [], None, [], [], None, [])
_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)


class Statements(Expressions):
    """Turns the statements that give names values and lead from one statement to the next."""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.bound[id(node.value)] = node.targets[0]
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.bound[id(target)] = node
        first = node.targets[0]
        node.value = self.assigned(node, node.value, first)
        node.targets = [self.expr(t) for t in node.targets]
        return node

    def assigned(self, node: ast.stmt, value: ast.expr, target: ast.expr) -> ast.expr:
        visited = self.expr(value)
        if isinstance(target, ast.Name) and isinstance(visited, (ast.Call, ast.IfExp)):
            index = self.site(value, value, shown=node, target=target)
            return self.hook("bind", index, visited, ast.Constant(target.id), at=value)
        if isinstance(target, (ast.Tuple, ast.List)):
            index = self.site(value, value, shown=node, target=target)
            return self.hook("unpack", index, visited, shape(target), at=value)
        return visited

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # Dataclasses read annotations; as text they need not be evaluated.
        node.annotation = located(ast.Constant(ast.unparse(node.annotation)), node.annotation)
        if node.value is not None:
            self.bound[id(node.value)] = node.target
            node.value = self.assigned(node, node.value, node.target)
        node.target = self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target, name = node.target, ast.Constant(IN_PLACE[type(node.op)])
        index = self.site(node, target, node.value, shown=node, target=_base(target))
        if isinstance(target, ast.Name):
            load = located(ast.Name(target.id, ast.Load()), target)
            value = self.hook("augment", index, name, load, self.expr(node.value), at=node)
            return located(ast.Assign([target], value), node)
        if isinstance(target, ast.Attribute):
            attribute = ast.Constant(self.mangled(target.attr))
            where = [self.expr(target.value), attribute]
            hook = "augment_attr"
        else:
            where = [self.expr(target.value), self.key(target.slice)]
            hook = "augment_item"
        call = self.hook(hook, index, name, *where, self.expr(node.value), at=node)
        return located(ast.Expr(call), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        prefer = not isinstance(node.body[-1], _LEAVING) or bool(node.orelse)
        node.test = self.truth(node.test, prefer=prefer, shown=node)
        node.body, node.orelse = self.body(node.body), self.body(node.orelse) if node.orelse else []
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        index = self.site(node.test, shown=node)
        enter = ast.Expr(self.hook("loop", index, at=node))
        test = self.hook("while", ast.Constant(index.value), self.expr(node.test), at=node.test)
        node.test = test
        node.body, node.orelse = self.body(node.body), self.body(node.orelse) if node.orelse else []
        return [located(enter, node), node]

    def visit_For(self, node: ast.For | ast.AsyncFor) -> ast.stmt:
        iterable = self.iteration(node, node.iter, node.target)
        target = self.expr(node.target)
        body = self.body(node.body)
        orelse = self.body(node.orelse) if node.orelse else []
        return located(ast.For(target, iterable, body, orelse), node)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        items = []
        for item in node.items:
            index = self.site(item.context_expr)
            context = self.hook("enter", index, self.expr(item.context_expr), at=item.context_expr)
            variable = None if item.optional_vars is None else self.expr(item.optional_vars)
            items.append(ast.withitem(context, variable))
        return located(ast.With(items, self.body(node.body)), node)

    visit_AsyncWith = visit_With

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        index = self.site(node.test)
        return located(ast.Expr(self.hook("truth", index, self.expr(node.test), at=node)), node)

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        kept = [h for h in node.handlers if not _raises_again(h)]
        kinds = [self.caught(copy.deepcopy(h.type), h) for h in kept]
        node.body = self.body(node.body)
        if kinds:
            given = located(ast.Lambda(_NOTHING, ast.Tuple(kinds, ast.Load())), node)
            inside = ast.withitem(self.hook("trying", given, at=node), None)
            node.body = [located(ast.With([inside], node.body), node)]
        for handler in node.handlers:
            handler.type = self.caught(handler.type, handler)
            handler.body = self.body(handler.body)
        node.orelse = self.body(node.orelse) if node.orelse else []
        node.finalbody = self.body(node.finalbody) if node.finalbody else []
        return node

    def caught(self, kind: ast.expr | None, handler: ast.AST) -> ast.expr:
        """What a handler catches."""
        if kind is None:
            return located(ast.Name("_ag_Exception", ast.Load()), handler)
        return self.hook("caught", self.expr(kind), at=kind)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.unused.add(id(node.value))
        node.value = self.expr(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        # Patterns are no expressions: they stay as written.
        node.guard = None if node.guard is None else self.truth(node.guard)
        node.body = self.body(node.body)
        return node


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _base(target: ast.expr) -> ast.expr:
    """What `x[i] += v` writes to: `x`."""
    return target.value if isinstance(target, ast.Subscript) else target
