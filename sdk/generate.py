#!/usr/bin/env python3
"""Generates the parts of the SDKs that follow from the documents of boxbuild.

    python3 sdk/generate.py            # writes the files
    python3 sdk/generate.py --check    # fails if a file is out of date

docs/errors.md has the error codes, docs/json.schema.json the objects that the programs print with `--json`, and docs/sdk.md the blocks of
TypeScript that the compiler and a test check.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ERRORS = ROOT / "docs/errors.md"
SCHEMA = ROOT / "docs/json.schema.json"
PAGE = ROOT / "docs/sdk.md"
PYTHON = ROOT / "sdk/python/boxbuild"
TYPESCRIPT = ROOT / "sdk/typescript"
WIDTH = 110
CODE = re.compile(r"^\| `([a-z0-9-]+)` \| (\d+) \| (.+) \|$", re.MULTILINE)
BLOCK = re.compile(r"^```ts\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ABOUT_ERRORS = "An exception class for each error code of boxbuild and boxlaunch."
ABOUT_SCHEMA = "The objects that boxbuild and boxlaunch print with `--json`: docs/json.md describes them."
#: The fields of an object: each with its type, whether it is always there, and its description.
Fields = "dict[str, tuple[str, bool, str]]"


def main() -> int:
    """Writes each file, or with `--check` lists the files that are out of date."""
    python, typescript = Python(), TypeScript()
    files = {
        PYTHON / "_errors.py": python.errors(),
        PYTHON / "_schema.py": python.schema(),
        TYPESCRIPT / "src/errors.ts": typescript.errors(),
        TYPESCRIPT / "src/schema.ts": typescript.schema(),
        TYPESCRIPT / "tests/page.ts": typescript.page(),
    }
    if sys.argv[1:] != ["--check"]:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date: run `python3 sdk/generate.py`")
    return 1 if stale else 0


def camel(name: str) -> str:
    """Returns the name of a class: `box-not-found` is `BoxNotFound`."""
    return "".join(word.capitalize() for word in re.split("[-_]", name))


def codes() -> list[tuple[str, str, str]]:
    """Returns each error code with the name of its class and its meaning."""
    return [(code, camel(code) + "Error", meaning + ".") for code, _, meaning in CODE.findall(ERRORS.read_text(encoding="utf-8"))]


def one_of(plural: str) -> str:
    """Returns the name of an element's class: `StatsBox` of `StatsBoxes`."""
    for end, one in (("ies", "y"), ("xes", "x"), ("s", "")):
        if plural.endswith(end) and not plural.endswith("ss"):
            return plural[: -len(end)] + one
    return plural + "Item"


class Language:
    """How a language writes types. Subclasses have the parts that differ."""

    any: str
    null: str
    #: The type of each JSON type.
    simple: dict[str, str]

    def header(self, source: Path, about: str) -> str:
        """Returns the first lines of a generated module."""
        raise NotImplementedError

    def list_of(self, kind: str) -> str:
        """Returns the type of a list."""
        raise NotImplementedError

    def map_of(self, kind: str) -> str:
        """Returns the type of an object with any names."""
        raise NotImplementedError

    def literal(self, values: list[Any]) -> str:
        """Returns the type of a value that is one of `values`."""
        raise NotImplementedError

    def union(self, kinds: list[str]) -> str:
        """Returns the type of a value of one of the types."""
        raise NotImplementedError

    def object(self, name: str, text: str, fields: Fields) -> str:
        """Returns the definition of an object."""
        raise NotImplementedError

    def alias(self, name: str, text: str, kind: str) -> str:
        """Returns the definition of another name of a type."""
        raise NotImplementedError

    def types(self) -> Types:
        """Returns the types of the output of `--json`."""
        types = Types(json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"], self)
        for name, definition in types.definitions.items():
            types.define(name, definition)
        return types


class Types:
    """The types of `--json` in one language, under construction."""

    def __init__(self, definitions: dict[str, Any], language: Language) -> None:
        self.definitions = definitions
        self.language = language
        self.classes: list[str] = []
        self.aliases: list[str] = []
        self.names: list[str] = []

    def define(self, name: str, definition: dict[str, Any]) -> None:
        """Adds a definition of the schema: a class, or another name of a type."""
        if "properties" in definition:
            self.add_class(camel(name), definition)
            return
        self.names.append(camel(name))
        kind = self.type_of(camel(name), definition)
        self.aliases.append(self.language.alias(camel(name), definition.get("description", ""), kind))

    def add_class(self, name: str, definition: dict[str, Any]) -> str:
        """Adds the class of an object, after the classes of the objects in it, and returns its name."""
        if name in self.names:
            return name
        required = set(definition.get("required", []))
        fields = {
            field: (self.type_of(name + camel(field), it), field in required, it.get("description") or "")
            for field, it in definition["properties"].items()
        }
        self.names.append(name)
        text = definition.get("description", "An object of the output").rstrip(".") + "."
        self.classes.append(self.language.object(name, text, fields))
        return name

    def type_of(self, name: str, of: Any) -> str:
        """Returns the type of a value. `name` is the name of its class if it is an object."""
        if "$ref" in of:
            return self.type_at(of["$ref"].split("/")[2:])
        if "const" in of or "enum" in of:
            values = of.get("enum", [of.get("const")])
            simple = all(value is None or isinstance(value, (str, int)) for value in values)
            return self.language.literal(values) if simple else self.language.any
        if "anyOf" in of:
            numbered = sum("properties" in one for one in of["anyOf"]) > 1
            return self.union([self.type_of(name + str(at) * numbered, one) for at, one in enumerate(of["anyOf"], 1)])
        kinds = of.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return self.union([self.simple(name, kind, of) for kind in kinds])

    def type_at(self, path: list[str]) -> str:
        """Returns the type of a definition, or of a property in one."""
        if len(path) == 1:
            return camel(path[0])
        found: Any = self.definitions
        for name in path:
            found = found[name]
        return self.type_of(camel("-".join(name for name in path if name != "properties")), found)

    def simple(self, name: str, kind: str, of: dict[str, Any]) -> str:
        """Returns the type of a value of one JSON type."""
        if kind == "array" and "items" in of:
            return self.language.list_of(self.type_of(one_of(name), of["items"]))
        if kind == "object" and "properties" in of:
            return self.add_class(name, of)
        if kind == "object" and isinstance(of.get("additionalProperties"), dict):
            return self.language.map_of(self.type_of(name + "Value", of["additionalProperties"]))
        return self.language.simple[kind]

    def union(self, kinds: list[str]) -> str:
        """Returns the type of a value of one of the types."""
        if kinds == [self.language.null]:
            return self.language.null
        rest = [kind for kind in kinds if kind != self.language.null]
        if not rest or self.language.any in rest:
            return self.language.any
        return self.language.union(list(dict.fromkeys(kinds)))


class Python(Language):
    """The modules of the package for Python."""

    any = "Any"
    null = "None"
    simple = {
        "string": "str",
        "integer": "int",
        "number": "float",
        "boolean": "bool",
        "null": "None",
        "object": "Dict[str, Any]",
        "array": "List[Any]",
    }

    def header(self, source: Path, about: str) -> str:
        head = f'"""{about}\n\nGenerated by sdk/generate.py from {source.relative_to(ROOT)}.\n"""'
        return f"{head}\n\nfrom __future__ import annotations\n"

    def docstring(self, text: str, indent: int) -> str:
        """Returns a docstring for an indented block."""
        space = " " * indent
        wrapped = textwrap.wrap(text, WIDTH - indent - 3)
        end = '"""' if len(wrapped) == 1 else f'\n{space}"""'
        return f'{space}"""' + f"\n{space}".join(wrapped) + end

    def comment(self, text: str, indent: int) -> list[str]:
        """Returns a comment of a field or of a name."""
        return [f"{' ' * indent}#: {line}" for line in textwrap.wrap(text, WIDTH - indent - 3)]

    def list_of(self, kind: str) -> str:
        return f"List[{kind}]"

    def map_of(self, kind: str) -> str:
        return f"Dict[str, {kind}]"

    def literal(self, values: list[Any]) -> str:
        return f"Literal[{', '.join(json.dumps(value) if isinstance(value, str) else str(value) for value in values)}]"

    def union(self, kinds: list[str]) -> str:
        rest = [kind for kind in kinds if kind != self.null]
        one = rest[0] if len(rest) == 1 else f"Union[{', '.join(rest)}]"
        return f"Optional[{one}]" if self.null in kinds else one

    def object(self, name: str, text: str, fields: Fields) -> str:
        kinds = {field: kind if always else f"NotRequired[{kind}]" for field, (kind, always, _) in fields.items()}
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
            lines = [f"class {name}(TypedDict):", self.docstring(text, 4), ""]
            for field, (_, _, about) in fields.items():
                lines += [*self.comment(about, 4), f"    {field}: {kinds[field]}"]
            return "\n".join(lines) + "\n"
        lines = [*self.comment(text, 0), f"{name} = TypedDict(", f'    "{name}",', "    {"]
        for field, (_, _, about) in fields.items():
            lines += [*self.comment(about, 8), f"        {json.dumps(field)}: {json.dumps(kinds[field])},"]
        return "\n".join([*lines, "    },", ")"]) + "\n"

    def alias(self, name: str, text: str, kind: str) -> str:
        return "\n".join([*self.comment(text, 0), f"{name} = {kind}\n"])

    def errors(self) -> str:
        """Returns the module with an exception class for each error code."""
        lines = [self.header(ERRORS, ABOUT_ERRORS)]
        lines.append("from typing import Dict, Type\n\nfrom ._failure import BoxbuildError\n")
        for code, name, meaning in codes():
            lines.append(f'\nclass {name}(BoxbuildError):\n{self.docstring(meaning, 4)}\n\n    code = "{code}"\n')
        lines.append("\n#: The class of each code.\nBY_CODE: Dict[str, Type[BoxbuildError]] = {")
        lines += [f'    "{code}": {name},' for code, name, _ in codes()]
        lines.append("}\n\n__all__ = [")
        lines += [f'    "{name}",' for _, name, _ in codes()]
        return "\n".join(lines) + "\n]\n"

    def quoted(self, alias: str, definitions: dict[str, Any]) -> str:
        """Quotes the names of definitions in a type that Python evaluates when it loads the module."""
        names = {camel(name) for name in definitions}
        name, _, kind = alias.rpartition(" = ")
        return f"{name} = " + re.sub(r"\w+", lambda word: f'"{word[0]}"' if word[0] in names else word[0], kind)

    def schema(self) -> str:
        """Returns the module with the types of the output of `--json`."""
        types = self.types()
        lines = [
            self.header(SCHEMA, ABOUT_SCHEMA),
            "from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union",
            "",
            "if TYPE_CHECKING:",
            "    from typing_extensions import NotRequired",
            "",
            *(f"\n{it}" for it in types.classes),
            "",
            *(self.quoted(it, types.definitions) for it in types.aliases),
            "__all__ = [",
            *(f'    "{name}",' for name in sorted(types.names)),
            "]",
        ]
        return "\n".join(lines) + "\n"


class TypeScript(Language):
    """The modules of the package for TypeScript."""

    any = "unknown"
    null = "null"
    simple = {
        "string": "string",
        "integer": "number",
        "number": "number",
        "boolean": "boolean",
        "null": "null",
        "object": "{ [name: string]: unknown }",
        "array": "unknown[]",
    }

    def header(self, source: Path, about: str) -> str:
        return f"/**\n * {about}\n *\n * Generated by sdk/generate.py from {source.relative_to(ROOT)}.\n */\n"

    def comment(self, text: str, indent: int) -> list[str]:
        """Returns a comment of a name."""
        space = " " * indent
        wrapped = textwrap.wrap(text, WIDTH - indent - 7)
        if len(wrapped) > 1:
            return [f"{space}/**", *(f"{space} * {line}" for line in wrapped), f"{space} */"]
        return [f"{space}/** {line} */" for line in wrapped]

    def list_of(self, kind: str) -> str:
        return f"({kind})[]" if " | " in kind else f"{kind}[]"

    def map_of(self, kind: str) -> str:
        return "{ [name: string]: " + kind + " }"

    def literal(self, values: list[Any]) -> str:
        return " | ".join(json.dumps(value) for value in values)

    def union(self, kinds: list[str]) -> str:
        return " | ".join(kinds)

    def object(self, name: str, text: str, fields: Fields) -> str:
        lines = [*self.comment(text, 0), f"export interface {name} {{"]
        for field, (kind, always, about) in fields.items():
            word = field if field.isidentifier() else json.dumps(field)
            lines += [*self.comment(about, 2), f"  {word}{'' if always else '?'}: {kind};"]
        return "\n".join([*lines, "}"]) + "\n"

    def alias(self, name: str, text: str, kind: str) -> str:
        return "\n".join([*self.comment(text, 0), f"export type {name} = {kind};\n"])

    def errors(self) -> str:
        """Returns the module with an error class for each error code."""
        lines = [self.header(ERRORS, ABOUT_ERRORS), 'import { BoxbuildError } from "./failure.js";\n']
        for code, name, meaning in codes():
            lines += [*self.comment(meaning, 0), f"export class {name} extends BoxbuildError {{"]
            lines.append(f'  static override readonly code: string = "{code}";\n}}\n')
        lines += [*self.comment("The class of each code.", 0), "export const BY_CODE: ReadonlyMap<string, typeof BoxbuildError> = new Map(["]
        lines += [f'  ["{code}", {name}],' for code, name, _ in codes()]
        return "\n".join([*lines, "]);"]) + "\n"

    def schema(self) -> str:
        """Returns the module with the types of the output of `--json`."""
        types = self.types()
        return "\n".join([self.header(SCHEMA, ABOUT_SCHEMA), *types.classes, *types.aliases])

    def page(self) -> str:
        """Returns the script of the page's blocks, which the live test runs."""
        blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
        return "\n".join([self.header(PAGE, "The blocks of the page, one after the other."), *blocks])


if __name__ == "__main__":
    sys.exit(main())
