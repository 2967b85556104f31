"""Expressions: every call, attribute, item, operator and truth becomes a hook's."""

from __future__ import annotations

import ast

from ....arguments import values_given
from .builder import Parts, located, shape
from .operators import BINARY, COMPARE, UNARY


class Expressions(Parts):
    """Turns expressions."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args:
            return node
        arguments = values_given(node)
        if isinstance(func, ast.Attribute):
            index = self.site(node, func.value, *arguments)
            head = [index, self.expr(func.value), ast.Constant(self.mangled(func.attr))]
            name = "method"
        else:
            index = self.site(node, *arguments)
            head = [index, self.expr(func)]
            name = "call"
        args = [self.argument(a) for a in node.args]
        keywords = [self.keyword(k) for k in node.keywords]
        return self.hook(name, *head, *args, at=node, keywords=keywords)

    def argument(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            spread = self.hook("star", self.expr(node.value), at=node)
            return located(ast.Starred(spread, ast.Load()), node)
        return self.expr(node)

    def keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.expr(node.value)
        if node.arg is None:
            value = self.hook("kwargs", value, at=node)
        return located(ast.keyword(node.arg, value), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = node.value
        index = self.site(node, value)
        if isinstance(node.ctx, ast.Load):
            name = ast.Constant(self.mangled(node.attr))
            return self.hook("attr", index, self.expr(value), name, at=node)
        node.value = self.hook("slot", index, self.expr(value), at=node)
        node.attr = self.mangled(node.attr)  # a method that is read alone stands in no class
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = node.value
        if isinstance(node.ctx, ast.Load):
            index = self.site(node, value, node.slice)
            return self.hook("item", index, self.expr(value), self.key(node.slice), at=node)
        shown = self.bound.get(id(node), node)
        index = self.site(node, value, shown=shown, target=value)
        node.value = self.hook("slot", index, self.expr(value), at=node)
        node.slice = self.expr(node.slice)
        return node

    def key(self, node: ast.expr) -> ast.expr:
        """A subscript as an ordinary expression: slices become calls."""
        if isinstance(node, ast.Slice):
            parts = [
                ast.Constant(None) if part is None else self.expr(part)
                for part in (node.lower, node.upper, node.step)
            ]
            return self.hook("slice", *parts, at=node)
        if isinstance(node, ast.Tuple):
            return located(ast.Tuple([self.key(e) for e in node.elts], ast.Load()), node)
        return self.argument(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        index = self.site(node, node.left, node.right)
        name = ast.Constant(BINARY[type(node.op)])
        return self.hook(
            "binary", index, name, self.expr(node.left), self.expr(node.right), at=node
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = node.operand
        if isinstance(operand, ast.Constant):
            return node
        if isinstance(node.op, ast.Not):
            node.operand = self.truth(operand)
            return node
        index = self.site(node, operand)
        return self.hook(
            "unary", index, ast.Constant(UNARY[type(node.op)]), self.expr(operand), at=node
        )

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1 or type(node.ops[0]) not in COMPARE:
            self.generic_visit(node)
            return node
        left, right = node.left, node.comparators[0]
        index = self.site(node, left, right)
        name = ast.Constant(COMPARE[type(node.ops[0])])
        return self.hook("binary", index, name, self.expr(left), self.expr(right), at=node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.hook("text", self.expr(node.value), at=node.value)
        if node.format_spec is not None:
            node.format_spec = self.expr(node.format_spec)
        return node

    def visit_Await(self, node: ast.Await) -> ast.expr:
        return self.expr(node.value)

    def truth(self, node: ast.expr, prefer: bool = True, shown: ast.AST | None = None) -> ast.expr:
        index = self.site(node, node, shown=shown, prefer=prefer)
        return self.hook("truth", index, self.expr(node), at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.expr(node.body), self.expr(node.orelse)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.arguments(node.args)
        self.functions.append("<lambda>")
        node.body = self.expr(node.body)
        self.functions.pop()
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.iteration(node, node.iter, node.target)
        node.target = self.expr(node.target)
        node.ifs = [self.truth(test) for test in node.ifs]
        node.is_async = 0
        return node

    def iteration(self, loop: ast.AST, iterable: ast.expr, target: ast.expr) -> ast.expr:
        # A comprehension has no position of its own: its iterable stands for it.
        shown = loop if hasattr(loop, "lineno") else iterable
        index = self.site(iterable, iterable, shown=shown, target=target)
        return self.hook("iterate", index, self.expr(iterable), shape(target), at=iterable)

    def arguments(self, node: ast.arguments) -> None:
        everything = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
        for argument in everything:
            if argument is not None:
                argument.annotation = None
        node.defaults = [self.expr(d) for d in node.defaults]
        node.kw_defaults = [None if d is None else self.expr(d) for d in node.kw_defaults]
