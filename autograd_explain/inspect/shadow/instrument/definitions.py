"""Modules, imports, functions and classes."""

from __future__ import annotations

import ast

from ..site import LibrarySource
from .builder import located
from .statements import Statements


class Instrument(Statements):
    """Turns a whole source."""

    def module(self, tree: ast.Module) -> ast.Module:
        """The twin of a module: a statement of it that fails does not end the walk."""
        found: list[ast.stmt] = []
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                continue
            index = self.site(statement)
            result = self.visit(statement)
            body = result if isinstance(result, list) else [result]
            fault = ast.Expr(
                self.hook("fault", index, ast.Name("_ag_error", ast.Load()), at=statement)
            )
            handler = ast.ExceptHandler(ast.Name("_ag_Exception", ast.Load()), "_ag_error", [fault])
            found.append(located(ast.Try(body, [handler], [], []), statement))
        return ast.fix_missing_locations(ast.Module(found, []))

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            whole = ast.Constant(alias.asname is not None)
            value = self.hook("import", ast.Constant(alias.name), whole, at=node)
            found.append(located(ast.Assign([ast.Name(name, ast.Store())], value), node))
        return found

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        module, level = ast.Constant(node.module or ""), ast.Constant(node.level)
        for alias in node.names:
            if alias.name == "*":
                call = self.hook("import_all", module, level, at=node)
                found.append(located(ast.Expr(call), node))
                continue
            value = self.hook("import_from", module, ast.Constant(alias.name), level, at=node)
            name = alias.asname or alias.name
            index = self.site(node)
            value = self.hook("bind", index, value, ast.Constant(name), at=node)
            target = ast.Name(name, ast.Store())
            found.append(located(ast.Assign([target], value), node))
        return found

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        decorators = [self.decorator(d) for d in node.decorator_list]
        self.arguments(node.args)
        self.functions.append(node.name)
        # A class inside a function starts a new naming scope, a function does not.
        body = self.body(node.body)
        self.functions.pop()
        twin = ast.FunctionDef(node.name, node.args, body, decorators)
        setattr(twin, "type_params", [])  # noqa: B010  (Python 3.12 asks for it)
        return located(twin, node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def decorator(self, node: ast.expr) -> ast.expr:
        index = self.site(node)
        return self.hook("decorate", index, self.expr(node), at=node)

    @property
    def _left_out(self) -> frozenset[str]:
        """Methods that twins lack: whatever Python calls when an object goes would run after the
        walk, and a library looks at every attribute for what has nothing to do with tensors."""
        looking = ("__getattribute__",) if isinstance(self.source, LibrarySource) else ()
        return frozenset(("__del__", *looking))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.decorator_list = [self.decorator(d) for d in node.decorator_list]
        name = ast.Constant(node.name)
        node.bases = [self.hook("base", self.argument(b), name, at=b) for b in node.bases]
        node.keywords = [self.keyword(k) for k in node.keywords]
        if hasattr(node, "type_params"):
            node.type_params = []
        functions, self.functions = self.functions, [*self.functions, node.name]
        self.classes.append(node.name)
        body = self.body([s for s in node.body if getattr(s, "name", "") not in self._left_out])
        self.classes.pop()
        self.functions = functions
        mark = ast.Assign([ast.Name("_ag_twin", ast.Store())], ast.Constant(True))
        node.body = [*body, located(mark, node)]
        return node
