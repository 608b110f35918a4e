"""One-way imports (DESIGN.md, section 7): a module imports only what stands above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sbnn

SOURCE = Path(sbnn.__file__).parent
# From the top down. `progress` stands below what it shows, and is imported only when it is shown.
ORDER = [
    *(
        "formats",
        "files",
        "_float64",
        "executors",
        "likelihood",
        "identity",
        "datasets",
        "network",
        "priors",
    ),
    *("gaussian", "target", "problem", "regression", "evaluator", "moves", "checkpoint", "tmcmc"),
    *("mixture", "evidence", "optimise", "laplace", "refine", "hierarchical", "heating"),
    *("gauss_newton", "laplace_optimum", "laplace_pruning", "laplace_mixture", "sparse_laplace"),
    *("predict", "relevance", "results", "loading", "resume", "comparison", "modes", "search"),
    *("progress", "averaging", "methods", "laplace_methods"),
    *(
        "fitted",
        "frames",
        "scaling",
        "families",
        "estimator",
        "estimator_io",
        "plots",
        "paper",
        "paper_report",
    ),
    *("glossary", "columns", "encodings", "cells", "tables", "outputs", "validation", "folder"),
    *("cautions", "report_figures", "report_network"),
    *("report", "comparison_table"),
    *("terminal", "options", "jax_settings", "cli", "__main__"),
]
# Manners that a module above may import inside a function, when they are asked for.
LAZY = {"estimator_io", "modes", "progress", "plots", "report"}


def modules() -> dict[str, Path]:
    return {path.stem: path for path in sorted(SOURCE.glob("*.py")) if path.stem != "__init__"}


def imports(tree: ast.AST) -> set[str]:
    """Modules of the package that the code imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("sbnn.")}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 1 and node.module:
                found.add(node.module.split(".")[0])
            elif node.level == 1 or node.module == "sbnn":
                found |= {a.name for a in node.names}
            elif node.module and node.module.startswith("sbnn."):
                found.add(node.module.split(".")[1])
    return found & set(modules())


def wrong_imports(name: str, source: str, order: list[str]) -> set[str]:
    tree = ast.parse(source)
    checking = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    inside = set().union(
        *(imports(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), set()
    )
    outside = imports(ast.Module([n for n in tree.body if n not in checking], []))
    lazy = inside & LAZY - imports(
        ast.Module([n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], [])
    )
    above = set(order[: order.index(name)])
    return outside - above - lazy


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_what_stands_above_it(name):
    assert name in ORDER, f"{name}.py is new: add it to ORDER in {Path(__file__).name}"
    wrong = wrong_imports(name, modules()[name].read_text(encoding="utf-8"), ORDER)
    assert not wrong, f"{name}.py imports {', '.join(sorted(wrong))}, which stand below it"


def test_the_package_itself_imports_its_modules_only_on_demand():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports(ast.Module(top, [])) == set()


def test_an_import_against_the_order_is_found():
    """Negative control: the check can fail."""
    order = ["network", "problem", "modes"]
    assert wrong_imports("network", "from sbnn.problem import Problem", order) == {"problem"}
    assert wrong_imports("network", "from sbnn import problem", order) == {"problem"}
    assert wrong_imports("network", "import sbnn.problem", order) == {"problem"}
    assert wrong_imports("network", "def f():\n    from sbnn.problem import P", order) == {
        "problem"
    }
    assert wrong_imports("network", "from sbnn.modes import m", order) == {"modes"}
    assert wrong_imports("network", "def f():\n    from sbnn.modes import m", order) == set()
    assert wrong_imports("problem", "from sbnn.network import Network", order) == set()
