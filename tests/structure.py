"""Measure the code's shape: its size, both ends of its modules and functions, what is said twice.

    python -m tests.structure [ROOT] [--json | --list WHAT | --check | --tighten]

Parse each file once and run none. `--list` prints what makes up a figure, `--check` the figures
that are out of their limits, and `--tighten` moves the limits to the figures, always towards less
room. `tests/limits.py` knows the limits, `tests/test_structure.py` holds them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from tests.checkout import PACKAGES, ROOT
from tests.limits import Figures, Limits, table, tightened

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef

SMALL, LARGE, LONG = 60, 500, 60
"""Code lines below which a module is a fragment; lines above which a module, or a function, is
hard to grasp."""

SHARED, SHARE = 4, 0.6
"""Two records are twins if they have so many fields in common, and such a part of the smaller."""

JSON_MODULES = {"parse.py", "api.py", "wire.py", "rpc.py"}
"""Edges, where untyped JSON may be walked."""

NOUNS = {
    "logging",
    "routing",
    "embedding",
    "streaming",
    "pairing",
    "linking",
    "timing",
    "setting",
    "string",
}
"""Names of modules that end like a gerund and are the field's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    line: int
    length: int

    @property
    def private(self) -> bool:
        return self.name.startswith("_") and not self.name.startswith("__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    name: str
    line: int
    protocol: bool
    methods: dict[str, tuple[bool, int]]
    """Whether each is async, and how many positional parameters it has."""
    fields: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    path: str
    code: int
    lines: int
    comments: int
    functions: list[Function]
    classes: list[Class]
    read: Counter[str]
    """How often each name is read, as a variable or as an attribute."""
    untyped: list[str]
    setters: list[str]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def stem(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".py")


# Reading one file.

STRING_OR_COMMENT = re.compile(
    r"""\#[^\n]*
    |\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
    |\"(?:\\.|[^\"\\\n])*\" | '(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


def code_lines(source: str, tree: ast.Module) -> int:
    """Count the lines that hold code: no docstring, no comment, not blank.

    An expression finds strings and comments in a tenth of the time that `tokenize` takes.
    """
    prose = prose_lines(tree)
    bare = STRING_OR_COMMENT.sub(_stand_in, source)
    return sum(
        bool(line.strip(" \t\f\\")) and number not in prose
        for number, line in enumerate(bare.split("\n"), start=1)
    )


def _stand_in(found: re.Match[str]) -> str:
    """Return as many lines as a string has, none of them blank; nothing for a comment."""
    return "" if found[0].startswith("#") else "x\n" * found[0].count("\n") + "x"


def prose_lines(tree: ast.Module) -> set[int]:
    """Return the lines of docstrings, those of attributes included."""
    prose: set[int] = set()
    for node in (tree, *_statements(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | AnyFunction):
            for part in node.body:
                if (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                ):
                    prose.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return prose


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a node, without a look into expressions."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            yield from _statements(inner)


def read_module(path: Path, root: Path) -> Module:
    """Parse a file and keep what the figures need."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    name = path.relative_to(root).as_posix()
    lines = source.split("\n")
    return Module(
        path=name,
        code=code_lines(source, tree),
        lines=source.count("\n"),
        comments=sum(line.lstrip().startswith("#") for line in lines),
        functions=[_function(node) for node in functions],
        classes=[_class(node) for node in nodes if isinstance(node, ast.ClassDef)],
        read=Counter(_names_read(nodes)),
        untyped=[
            f"{name}:{node.lineno} {node.name}"
            for node in functions
            if path.name not in JSON_MODULES and _is_untyped(node, lines)
        ],
        setters=[
            f"{name}:{node.lineno} {ast.unparse(target)}"
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if _is_anothers(target)
        ],
    )


def _function(node: AnyFunction) -> Function:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    return Function(name=node.name, line=node.lineno, length=length)


def _class(node: ast.ClassDef) -> Class:
    bases = {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases}
    return Class(
        name=node.name,
        line=node.lineno,
        protocol="Protocol" in bases,
        methods={
            part.name: (isinstance(part, ast.AsyncFunctionDef), len(part.args.args))
            for part in node.body
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name != "__init__"
        },
        fields=frozenset(
            part.target.id
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ),
    )


def _names_read(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr


def _is_untyped(node: AnyFunction, lines: Sequence[str]) -> bool:
    """Tell whether untyped JSON goes in or comes out."""
    parameters = (*node.args.args, *node.args.kwonlyargs)
    for annotation in (*(parameter.annotation for parameter in parameters), node.returns):
        if annotation is None:
            continue
        # Unparsing is slow: only where the source may hold what is looked for.
        written = "".join(lines[annotation.lineno - 1 : annotation.end_lineno])
        if "Any" in written or "Json" in written:
            text = ast.unparse(annotation)
            if text == "Json" or "dict[str, Any]" in text or "Mapping[str, Any]" in text:
                return True
    return False


def _is_anothers(target: ast.expr) -> bool:
    """Tell whether an assignment sets an attribute of one of the object's own parts."""
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Attribute)
        and isinstance(target.value.value, ast.Name)
        and target.value.value.id == "self"
    )


# What makes up the figures: lists of lines that can be printed, and counted.


def product_lists(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return every list but that of the tests, by the name that `--list` takes."""
    named = [module for module in modules if module.stem not in {"__init__", "__main__"}]
    functions = [(module, function) for module in modules for function in module.functions]
    classes = [(module, cls) for module in modules for cls in module.classes]
    return {
        "modules": _by_size({module.path: module.code for module in named}),
        "small": [f"{module.code:4d} {module.path}" for module in named if module.code < SMALL],
        "large": [f"{module.lines:4d} {module.path}" for module in named if module.lines > LARGE],
        "folders": _by_size(Counter(module.folder for module in named)),
        "gerunds": [
            module.path
            for module in named
            if module.stem.endswith("ing") and module.stem not in NOUNS
        ],
        "long": [
            f"{module.path}:{function.line} {function.name} ({function.length})"
            for module, function in functions
            if function.length > LONG
        ],
        "helpers": [line for module in modules for line in _lone_helpers(module)],
        "classes": [f"{module.path}:{cls.line} {cls.name}" for module, cls in classes],
        "names": _names_twice(classes),
        "protocols": _lone_protocols(classes),
        "twins": _twins(classes),
        "untyped": [line for module in modules for line in module.untyped],
        "setters": [line for module in modules for line in module.setters],
    }


def _by_size(sizes: Mapping[str, int]) -> list[str]:
    return [f"{size:5d} {name}" for name, size in sorted(sizes.items(), key=lambda item: -item[1])]


def _lone_helpers(module: Module) -> list[str]:
    defined = Counter(function.name for function in module.functions)
    return [
        f"{module.path}:{function.line} {function.name}"
        for function in module.functions
        if function.private and defined[function.name] == 1 and module.read[function.name] <= 1
    ]


def _names_twice(classes: Iterable[tuple[Module, Class]]) -> list[str]:
    """Return the names, the most frequent first; an underscore before one makes no other name."""
    places: dict[str, list[str]] = {}
    for module, cls in classes:
        places.setdefault(cls.name.lstrip("_"), []).append(module.path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    return [
        f"{len(paths)} {name}: {', '.join(paths)}"
        for name, paths in sorted(twice.items(), key=lambda item: -len(item[1]))
    ]


def _lone_protocols(classes: Sequence[tuple[Module, Class]]) -> list[str]:
    """Return the protocols that at most one class of the product meets; one without methods asks
    for nothing and does not count."""
    lone = []
    offered = [cls.methods for _, cls in classes if not cls.protocol]
    for module, cls in classes:
        if cls.protocol and cls.methods:
            met = sum(cls.methods.items() <= methods.items() for methods in offered)
            if met <= 1:
                lone.append(f"{module.path}:{cls.line} {cls.name} ({met})")
    return lone


def _twins(classes: Iterable[tuple[Module, Class]]) -> list[str]:
    """Return the pairs of records, those with most in common first. The lab speaks the platforms'
    formats, so that its own do not count."""
    records = [
        (f"{module.path}:{cls.name}", cls.fields)
        for module, cls in classes
        if len(cls.fields) >= SHARED and not module.path.startswith("bot/lab/")
    ]
    found = []
    for (one, fields), (other, others) in combinations(records, 2):
        both = len(fields & others)
        if both >= SHARED and both >= SHARE * min(len(fields), len(others)):
            found.append(f"{both:2d} {one} ~ {other}")
    return sorted(found, reverse=True)


# The figures.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    figures: Figures
    lists: dict[str, list[str]]


def measure(root: Path) -> Shape:
    """Read the product and its tests below a folder, each file once."""
    modules = [
        read_module(path, root)
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    ]
    tests = {}
    for path in sorted((root / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tests[path.relative_to(root).as_posix()] = code_lines(source, ast.parse(source))
    readme = root / "README.md"
    lists = product_lists(modules)
    figures = {
        **_sizes(modules),
        "sloc.tests": sum(tests.values()),
        **_module_figures(modules, lists),
        **_function_figures(modules, lists),
        **_class_figures(modules, lists),
        "signatures with untyped JSON": len(lists["untyped"]),
        "attributes set on another's part": len(lists["setters"]),
        "readme bytes": readme.stat().st_size if readme.exists() else 0,
    }
    return Shape(figures=figures, lists={**lists, "tests": _by_size(tests)})


def _sizes(modules: Iterable[Module]) -> Figures:
    """Return the code lines of all, of each package, and of each folder one level below one."""
    sizes: Counter[str] = Counter({f"sloc.{package}": 0 for package in ("", *PACKAGES)})
    for module in modules:
        package, *below = module.path.split("/")[:-1]
        for name in {"", package, "/".join((package, *below[:1]))}:
            sizes[f"sloc.{name}"] += module.code
    return {
        name.removesuffix("."): sizes[name]
        for name in sorted(sizes, key=lambda name: (name.count("/"), name))
    }


def _module_figures(modules: Sequence[Module], lists: Mapping[str, list[str]]) -> Figures:
    lines = sum(module.lines for module in modules)
    comments = sum(module.comments for module in modules)
    return {
        "modules": len(lists["modules"]),
        "modules.small": len(lists["small"]),
        "modules.large": len(lists["large"]),
        "modules.in the fullest folder": int(lists["folders"][0].split()[0]),
        "modules named by a gerund": len(lists["gerunds"]),
        "comment lines per 1,000": round(1000 * comments / lines, 1),
    }


def _function_figures(modules: Sequence[Module], lists: Mapping[str, list[str]]) -> Figures:
    lengths = sorted(function.length for module in modules for function in module.functions)
    number = len(lengths)
    return {
        "functions": number,
        "function lines, median": statistics.median(lengths),
        "function lines, p90": lengths[int(number * 0.9)],
        "functions over 60 lines, %": round(100 * len(lists["long"]) / number, 2),
        "private helpers used once, %": round(100 * len(lists["helpers"]) / number, 1),
        "code lines per function": round(sum(module.code for module in modules) / number, 1),
    }


def _class_figures(modules: Sequence[Module], lists: Mapping[str, list[str]]) -> Figures:
    return {
        "classes": len(lists["classes"]),
        "class names used twice": len(lists["names"]),
        "protocols": sum(cls.protocol for module in modules for cls in module.classes),
        "protocols with one implementation": len(lists["protocols"]),
        "twin records": len(lists["twins"]),
    }


# The command.


def main(arguments: Sequence[str]) -> int:
    """Print what is asked for; return 1 if a figure is out of its limits."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", allow_abbrev=False)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked.add_argument("--list", metavar="WHAT", help="print what makes up a figure")
    asked.add_argument("--check", action="store_true", help="print the figures out of their limits")
    asked.add_argument("--tighten", action="store_true", help="move the limits to the figures")
    options = parser.parse_args(arguments)
    shape = measure(options.root)
    if options.list is not None:
        if options.list not in shape.lists:
            parser.error(f"--list takes one of: {', '.join(sorted(shape.lists))}")
        print("\n".join(shape.lists[options.list]))
    elif options.json:
        print(json.dumps(shape.figures, indent=1))
    elif options.check:
        complaints = Limits.read(options.root).complaints(shape.figures)
        print("\n".join(complaints))
        return 1 if complaints else 0
    elif options.tighten:
        project = options.root / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        project.write_text(tightened(text, shape.figures), encoding="utf-8")
    else:
        print(table(shape.figures, Limits.read(options.root)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
