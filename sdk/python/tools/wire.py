"""Generates the types of requests and responses from docs/reference/openapi.json: `python tools/wire.py`.

| file | what |
| --- | --- |
| `flowfabric/wire.py` | every schema of the document as a `TypedDict`, a `Literal` or a `Union` |
| `flowfabric/decoded.py` | answers that carry payloads, as dataclasses that decode them |

Run it after the document changed. A test fails while the two files differ from what this tool writes.
"""

from __future__ import annotations

import dataclasses
import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

SDK = Path(__file__).resolve().parent.parent
DOCUMENT = SDK.parent.parent / "docs" / "reference" / "openapi.json"
PACKAGE = SDK / "src" / "flowfabric"

HEAD = "# Generated from docs/reference/openapi.json by tools/wire.py; change it there.\n"
WIDTH = 120

#: Keyword arguments: the fields of a request's schema, without a method's own parameters.
ARGUMENTS: Mapping[str, Tuple[str, Sequence[str]]] = {
    "SubmitOptions": ("SubmitBody", ["kind", "input"]),
    "FlowOptions": ("SubmitFlowBody", ["kind", "members", "edges"]),
    "BudgetOptions": ("CreateBudgetBody", ["dimensions"]),
    "BudgetChanges": ("ChangeBudgetBody", ["dimensions"]),
    "QuotaOptions": ("CreateQuotaBody", []),
    "QuotaChanges": ("ChangeQuotaBody", []),
    "LaneOptions": ("LaneBody", []),
    "ScheduleOptions": ("ScheduleBody", ["times", "action"]),
    "ExecutionChanges": ("ChangeExecutionBody", []),
    "CancelWhere": ("BulkCancelBody", []),
    "ReplayWhere": ("BulkReplayBody", []),
}

#: Keyword arguments: the query parameters of an operation, without a method's own parameters.
FILTERS: Mapping[str, Tuple[str, str, Sequence[str]]] = {
    "ExecutionFilter": ("get", "/v1/executions", ["limit", "cursor"]),
    "FlowFilter": ("get", "/v1/flows", ["limit", "cursor"]),
    "BudgetFilter": ("get", "/v1/budgets", ["limit", "cursor"]),
    "EventFilter": ("get", "/v1/events", ["after", "types", "limit", "follow"]),
}

#: Responses with payloads: the schema, and the name of its dataclass.
DECODED: Mapping[str, str] = {
    "Child": "Child",
    "Event": "Event",
    "ExecutionResult": "ExecutionResult",
    "Failure": "Failure",
    "Passed": "Upstream",
    "Reserved": "Reserved",
    "Resume": "Resume",
    "Signal": "Signal",
    "SignalDelivered": "SignalAnswer",
    "StreamLine": "Frame",
    "Submitted": "Submitted",
    "Task": "Task",
    "UsageAnswer": "UsageAnswer",
}

Schema = Mapping[str, Any]

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
#: A name inside an expression. It is quoted if it occurs before its definition.
_NAME = re.compile(r"@(\w+)@")


class Stale(Exception):
    """The tables of this tool contain a name that is missing in the document."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    schema: Schema
    required: bool

    @property
    def doc(self) -> str:
        """The field's description. For an optional field it is inside one of its alternatives."""
        inner = [part.get("description") for part in _alternatives(self.schema)]
        return str(self.schema.get("description") or next(filter(None, inner), ""))


class Document:
    """The OpenAPI document."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.schemas: Mapping[str, Schema] = content.get("components", {}).get("schemas", {})
        #: Schemas that a request may contain.
        self.requested = self._reachable(self._bodies())

    def schema(self, name: str) -> Schema:
        """The schema with this name."""
        if name not in self.schemas:
            raise Stale(f"{DOCUMENT.name} has no schema {name}")
        return self.schemas[name]

    def resolved(self, schema: Schema) -> Schema:
        """The schema, with a reference resolved."""
        while "$ref" in schema:
            schema = self.schema(_referred(schema))
        return schema

    def parameters(self, method: str, path: str) -> List[Field]:
        """The query parameters of an operation."""
        operation = self.content.get("paths", {}).get(path, {}).get(method)
        if operation is None:
            raise Stale(f"{DOCUMENT.name} has no operation {method.upper()} {path}")
        found: List[Field] = []
        for each in operation.get("parameters", []):
            if each.get("in") == "query":
                # A parameter that is None is left out.
                either = [each.get("schema", {}), {"type": "null"}]
                found.append(Field(each["name"], {"oneOf": either, "description": each.get("description")}, False))
        return found

    def fields(self, schema: Schema) -> Dict[str, Field]:
        """All fields of a schema. A field of alternatives is required if every alternative requires it."""
        schema = self.resolved(schema)
        needed = set(schema.get("required", []))
        properties = schema.get("properties", {})
        found = {name: Field(name, _schema(part), name in needed) for name, part in properties.items()}
        for part in schema.get("allOf", []):
            for name, field in self.fields(part).items():
                required = field.required or (name in found and found[name].required)
                found[name] = dataclasses.replace(field, required=required)
        alternatives = [self.fields(part) for part in _alternatives(schema) if not _is_null(part)]
        for name in sorted({name for fields in alternatives for name in fields}):
            same = [fields[name] for fields in alternatives if name in fields]
            schemas = [field.schema for field in same]
            merged = schemas[0] if all(each == schemas[0] for each in schemas) else {"oneOf": schemas}
            required = len(same) == len(alternatives) and all(field.required for field in same)
            found.setdefault(name, Field(name, merged, required))
        return found

    def is_record(self, schema: Schema) -> bool:
        """True for an object with declared fields, even if there are none."""
        schema = self.resolved(schema)
        closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
        return ("properties" in schema or closed) and not _alternatives(schema) and "allOf" not in schema

    def is_whole(self, schema: Schema) -> bool:
        """True if several schemas together describe one object."""
        parts = [part for part in schema.get("allOf", []) if self.fields(part)]
        return len(parts) > 1 or (len(parts) == 1 and "properties" in schema)

    def _bodies(self) -> Iterator[Schema]:
        for operations in self.content.get("paths", {}).values():
            for operation in operations.values():
                if isinstance(operation, dict):
                    for content in operation.get("requestBody", {}).get("content", {}).values():
                        yield content.get("schema", {})

    def _reachable(self, schemas: Iterable[Any]) -> Set[str]:
        found: Set[str] = set()
        waiting = list(schemas)
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting.extend(part)
            elif isinstance(part, dict):
                name = _referred(part)
                if name and name not in found:
                    found.add(name)
                    waiting.append(self.schemas.get(name, {}))
                waiting.extend(value for key, value in part.items() if key != "$ref")
        return found


@dataclasses.dataclass
class Definition:
    """A generated type with a name."""

    name: str
    doc: str
    #: The type, if the definition is an alias.
    alias: str = ""
    bases: Sequence[str] = ()
    #: Name, type and description of each field, if the definition is a record.
    fields: Sequence[Tuple[str, str, str]] = ()

    def uses(self) -> List[str]:
        """The names that must be defined before."""
        return [*self.bases, *_NAME.findall(" ".join([self.alias, *(kind for _, kind, _ in self.fields)]))]


class Wire:
    """Converts the schemas of the document to types."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.definitions: Dict[str, Definition] = {}
        for name in sorted(document.schemas):
            self.named(name)
        for name, (schema, without) in ARGUMENTS.items():
            self._unused(name)
            fields = [field for field in self._said(schema) if field.name not in without]
            self._record(name, f"Fields of `{schema}` as keyword arguments.", fields, True)
        for name, (method, path, without) in FILTERS.items():
            self._unused(name)
            fields = [field for field in document.parameters(method, path) if field.name not in without]
            self._record(name, f"Parameters of `{method.upper()} {path}` as keyword arguments.", fields, True)

    def named(self, name: str) -> str:
        """The type expression for a named schema. Records, unions and enums are defined under that name."""
        schema, called = self.document.schema(name), _identifier(name)
        if called in self.definitions:
            return f"@{called}@"
        request = name in self.document.requested
        doc = str(schema.get("description", ""))
        several = [part for part in _alternatives(schema) if not _is_null(part)]
        if "$ref" in schema:
            return self.named(_referred(schema))
        if self.document.is_record(schema):
            fields = self._said(name) if request else self.document.fields(schema).values()
            self._record(called, doc, fields, request)
        elif self.document.is_whole(schema):
            self._whole(called, doc, schema, request)
        elif len(several) > 1 or "enum" in schema:
            # Registered before its parts, because they may refer to it.
            self.definitions[called] = Definition(called, doc)
            self.definitions[called].alias = self.expression(schema, called, request)
        else:
            return self.expression(schema, called, request)
        return f"@{called}@"

    def expression(self, schema: Any, place: str, request: bool) -> str:
        """The type of a schema. A record without a name is defined under the name of its place."""
        kinds: List[str] = []
        self._collect(_schema(schema), place, request, kinds)
        distinct = list(dict.fromkeys(kinds))
        if "Any" in distinct or not distinct:
            return "Any"
        present = [kind for kind in distinct if kind != "None"]
        joined = present[0] if len(present) == 1 else f"Union[{', '.join(present)}]" if present else "None"
        return f"Optional[{joined}]" if "None" in distinct and present else joined

    def _collect(self, schema: Schema, place: str, request: bool, kinds: List[str]) -> None:
        """Adds each alternative of a schema, `None` among them."""
        if schema.get("nullable"):
            kinds.append("None")
        if "$ref" in schema:
            name = _referred(schema)
            inline = self.document.schema(name)
            # Lists and maps are written where they are used, in the form for requests or for responses.
            if _identifier(name) in self.definitions or not _is_container(inline):
                kinds.append(self.named(name))
            else:
                self._collect(inline, place, request, kinds)
        elif "const" in schema or "enum" in schema:
            self._literal(schema, kinds)
        elif _alternatives(schema):
            several = [part for part in _alternatives(schema) if not _is_null(part)]
            for number, part in enumerate(_alternatives(schema)):
                if _is_null(part):
                    kinds.append("None")
                else:
                    where = place if len(several) == 1 else place + _distinction(part, number)
                    kinds.append(self.expression(part, where, request))
        elif self.document.is_whole(schema):
            kinds.append(self._within(place, schema, request))
        elif "allOf" in schema:
            # One type; the other parts add a bound, a default or a description.
            parts = [self.expression(part, place, request) for part in schema["allOf"]]
            kinds.append(next((part for part in parts if part != "Any"), "Any"))
        else:
            types = schema.get("type", [])
            for kind in [types] if isinstance(types, str) else types:
                kinds.append(self._typed(kind, schema, place, request))
            if not types:
                kinds.append(self._within(place, schema, request) if "properties" in schema else "Any")

    @staticmethod
    def _literal(schema: Schema, kinds: List[str]) -> None:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        if None in values:
            kinds.append("None")
        words = [json.dumps(value) if isinstance(value, str) else repr(value) for value in values if value is not None]
        if words:
            kinds.append(f"Literal[{', '.join(words)}]")

    def _typed(self, kind: str, schema: Schema, place: str, request: bool) -> str:
        if kind == "null":
            return "None"
        if kind == "array":
            if "prefixItems" in schema:
                parts = [self.expression(part, f"{place}{n}", request) for n, part in enumerate(schema["prefixItems"])]
                return f"Tuple[{', '.join(parts)}]"
            item = self.expression(schema.get("items"), place, request)
            return f"{'Sequence' if request else 'List'}[{item}]"
        if kind == "object":
            if "properties" in schema:
                return self._within(place, schema, request)
            value = self.expression(schema.get("additionalProperties"), place, request)
            return f"{'Mapping' if request else 'Dict'}[str, {value}]"
        return _SCALARS.get(kind, "Any")

    def _within(self, place: str, schema: Schema, request: bool) -> str:
        """Defines a record that has no name in the document."""
        name, number = place, 2
        while name in self.definitions or name in map(_identifier, self.document.schemas):
            name, number = f"{place}{number}", number + 1
        if self.document.is_whole(schema):
            self._whole(name, str(schema.get("description", "")), schema, request)
        else:
            fields = list(self.document.fields(schema).values())
            self._record(name, str(schema.get("description", "")), fields, request)
        return f"@{name}@"

    def _whole(self, name: str, doc: str, schema: Schema, request: bool) -> None:
        """Defines an object that several schemas describe: by inheritance, or field by field if they overlap."""
        parts = schema["allOf"]
        bases = [part for part in parts if "$ref" in part and self.document.is_record(part)]
        own = {field for part in parts if part not in bases for field in self.document.fields(part)}
        own |= set(schema.get("properties", {}))
        inherited = [field for base in bases for field in self.document.fields(base)]
        if own & set(inherited) or len(inherited) != len(set(inherited)):
            bases, inherited = [], []
        fields = [field for field in self.document.fields(schema).values() if field.name not in inherited]
        for base in bases:
            self.named(_referred(base))
        self._record(name, doc, fields, request, [_identifier(_referred(base)) for base in bases])

    def _record(
        self, name: str, doc: str, fields: Iterable[Field], request: bool, bases: Sequence[str] = ()
    ) -> None:
        # Registered before its fields, because they may refer to it.
        record = self.definitions[name] = Definition(name, doc, bases=bases)
        written: List[Tuple[str, str, str]] = []
        for field in fields:
            kind = self.expression(field.schema, name + _camel(field.name), request)
            written.append((field.name, kind if field.required else f"NotRequired[{kind}]", field.doc))
        record.fields = written

    def _said(self, name: str) -> List[Field]:
        """The fields of a request's schema, without the encodings of payloads, which the client sets."""
        fields = self.document.fields(self.document.schema(name))
        return [field for field in fields.values() if _payload_of(field.name, fields) is None]

    def _unused(self, name: str) -> None:
        if name in self.definitions:
            raise Stale(f"{DOCUMENT.name} has a schema {name}: tools/wire.py needs another name for its own")

    def text(self) -> str:
        """The text of the module."""
        parts = [
            HEAD,
            '"""The types of requests and responses, as typed dictionaries.\n\n'
            "An optional field is `NotRequired`. A payload in a request is any JSON value or bytes. The client\n"
            'writes its encoding.\n"""\n\n',
            "from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union\n\n",
            "from typing_extensions import NotRequired, TypedDict\n",
        ]
        written: Set[str] = set()
        under_way: Set[str] = set()

        def write(name: str) -> None:
            if name in written or name in under_way:
                return
            under_way.add(name)
            definition = self.definitions[name]
            for used in definition.uses():
                write(used)
            parts.append("\n\n" + _definition(definition, written))
            written.add(name)

        for name in sorted(self.definitions):
            write(name)
        return _imported("".join(parts))


class Decoded:
    """Generates the dataclasses of responses."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._document = wire.document

    def text(self) -> str:
        """The text of the module."""
        parts = [
            HEAD,
            '"""Responses with payloads, as dataclasses. A JSON payload is a Python value, any other payload is bytes."""\n\n',
            "from __future__ import annotations\n\n",
            "import dataclasses\n",
            "from typing import Any, Dict, List, Literal, Mapping, Optional, Union\n\n",
            "from typing_extensions import Self\n\n",
            "from . import wire\n",
            "from .payload import take\n",
        ]
        for schema, name in sorted(DECODED.items(), key=lambda item: item[1]):
            parts.append(f"\n\n{self._class(schema, name)}")
        return _imported("".join(parts))

    def _class(self, schema: str, name: str) -> str:
        fields = self._document.fields(self._document.schema(schema))
        kept = [field for field in fields.values() if _payload_of(field.name, fields) is None]
        # In a dataclass, fields with a default come last.
        kept.sort(key=lambda field: not field.required or self._is_payload(field))
        declared, read = [], []
        for field in kept:
            kind, default, how = self._field(field, fields)
            if field.doc:
                declared.append(_docstring(field.doc, "    ", mark="#: "))
            declared.append(f"    {field.name}: {kind}{f' = {default}' if default else ''}\n")
            read.append(f"            {field.name}={how},\n")
        doc = str(self._document.schema(schema).get("description") or "")
        return (
            "@dataclasses.dataclass(frozen=True)\n"
            f"class {name}:\n{_docstring(doc, '    ') + chr(10) if doc else ''}{''.join(declared)}\n"
            "    @classmethod\n"
            "    def read(cls, answer: Mapping[str, Any]) -> Self:\n"
            '        """Reads the API\'s JSON."""\n'
            f"        return cls(\n{''.join(read)}        )\n"
        )

    def _is_payload(self, field: Field) -> bool:
        return self._wire.expression(field.schema, field.name, False) == "Any"

    def _field(self, field: Field, fields: Mapping[str, Field]) -> Tuple[str, str, str]:
        """The type of a field, its default, and how it is read."""
        name = json.dumps(field.name)
        if self._is_payload(field):
            encoding = next((other for other in fields if _payload_of(other, fields) == field.name), None)
            if encoding is None:
                return "Any", "None", f"answer.get({name})"
            return "Any", "None", f'take(answer.get({name}), answer.get("{encoding}"))'
        given = f"answer[{name}]" if field.required else f"answer.get({name})"
        schema = self._only(field.schema)
        item = self._only(schema.get("items") or {})
        value = self._only(schema.get("additionalProperties") or {})
        if _referred(schema) in DECODED:
            kind = DECODED[_referred(schema)]
            if field.required:
                return kind, "", f"{kind}.read({given})"
            return f"Optional[{kind}]", "None", f"None if {given} is None else {kind}.read(answer[{name}])"
        if _referred(item) in DECODED:
            kind = DECODED[_referred(item)]
            several = given if field.required else f"{given} or []"
            return f"List[{kind}]", self._empty("list", field), f"[{kind}.read(item) for item in {several}]"
        if _referred(value) in DECODED:
            kind = DECODED[_referred(value)]
            several = given if field.required else f"({given} or {{}})"
            read = f"{{name: {kind}.read(item) for name, item in {several}.items()}}"
            return f"Dict[str, {kind}]", self._empty("dict", field), read
        kind = _NAME.sub(r"wire.\1", self._wire.expression(field.schema, field.name, False))
        if field.required:
            return kind, "", given
        bare = kind[len("Optional[") : -1] if kind.startswith("Optional[") else kind
        if bare.startswith("List["):
            return bare, self._empty("list", field), f"{given} or []"
        if bare.startswith("Dict["):
            return bare, self._empty("dict", field), f"{given} or {{}}"
        return f"Optional[{bare}]", "None", given

    @staticmethod
    def _empty(kind: str, field: Field) -> str:
        return "" if field.required else f"dataclasses.field(default_factory={kind})"

    @staticmethod
    def _only(schema: Any) -> Schema:
        """The only alternative of an optional schema."""
        several = [part for part in _alternatives(_schema(schema)) if not _is_null(part)]
        return several[0] if len(several) == 1 else _schema(schema)


def _schema(part: Any) -> Schema:
    """The schema as an object. A schema may be `true`, which allows everything."""
    return part if isinstance(part, dict) else {}


def _alternatives(schema: Schema) -> List[Schema]:
    return [_schema(part) for part in [*schema.get("oneOf", []), *schema.get("anyOf", [])]]


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or schema.get("const", 0) is None


def _is_container(schema: Schema) -> bool:
    """True for a list, and for an object with arbitrary keys."""
    types = schema.get("type", [])
    kinds = {types} if isinstance(types, str) else set(types)
    is_map = "object" in kinds and "properties" not in schema and schema.get("additionalProperties") is not False
    return not _alternatives(schema) and "allOf" not in schema and ("array" in kinds or is_map)


def _referred(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _payload_of(name: str, fields: Mapping[str, Field]) -> Optional[str]:
    """The payload whose encoding this field contains."""
    payload = "value" if name == "encoding" else name[: -len("_encoding")] if name.endswith("_encoding") else ""
    return payload if payload in fields else None


def _identifier(name: str) -> str:
    return name if name.isidentifier() and not keyword.iskeyword(name) else _camel(name)


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"\W|_", name))


def _distinction(schema: Schema, number: int) -> str:
    """The distinguishing name of an alternative: its title, its base, a constant, or its first field."""
    properties = schema.get("properties", {})
    words = [schema.get("title"), *(_referred(part) for part in schema.get("allOf", []))]
    for part in properties.values():
        values = [part["const"]] if "const" in part else part.get("enum", [])
        words.append(values[0] if len(values) == 1 and isinstance(values[0], str) else None)
    words += [*schema.get("required", [])[:1], *list(properties)[:1], str(number)]
    return _camel(next(word for word in words if word))


def _definition(definition: Definition, written: Set[str]) -> str:
    def shown(expression: str) -> str:
        return _NAME.sub(lambda name: name[1] if name[1] in written else f'"{name[1]}"', expression)

    if definition.alias:
        doc = _docstring(definition.doc, "", mark="#: ") if definition.doc else ""
        return f"{doc}{_broken(f'{definition.name} = {shown(definition.alias)}')}\n"
    if any(not name.isidentifier() or keyword.iskeyword(name) for name, _, _ in definition.fields):
        # A keyword cannot be the name of a field in a class.
        doc = _docstring(definition.doc, "", mark="#: ") if definition.doc else ""
        fields = "".join(f"        {json.dumps(name)}: {shown(kind)},\n" for name, kind, _ in definition.fields)
        return f'{doc}{definition.name} = TypedDict(\n    "{definition.name}",\n    {{\n{fields}    }},\n)\n'
    lines = [f"class {definition.name}({', '.join(definition.bases) or 'TypedDict'}):\n"]
    if definition.doc:
        lines.append(_docstring(definition.doc, "    ") + ("\n" if definition.fields else ""))
    elif not definition.fields:
        lines.append("    pass\n")
    for name, kind, doc in definition.fields:
        lines.append(f"    {_broken(f'{name}: {shown(kind)}')}\n")
        if doc:
            lines.append(_docstring(doc, "    "))
    return "".join(lines)


def _docstring(text: str, indent: str, mark: str = "") -> str:
    words = " ".join(text.split())
    if mark:
        lines = textwrap.wrap(words, WIDTH, initial_indent=indent + mark, subsequent_indent=indent + mark)
        return "".join(f"{line}\n" for line in lines)
    safe = words.replace("\\", "\\\\").replace('"""', "'''")
    safe = safe[:-1] + '\\"' if safe.endswith('"') else safe
    if len(indent) + len(safe) + 6 <= WIDTH:
        return f'{indent}"""{safe}"""\n'
    lines = textwrap.wrap(safe, WIDTH - 3, initial_indent=f'{indent}"""', subsequent_indent=indent)
    return "\n".join(lines) + f'\n{indent}"""\n'


def _broken(line: str) -> str:
    """A long list of alternatives, one per line."""
    if len(line) + 4 <= WIDTH or "[" not in line:
        return line
    opened = line.index("[") + 1
    depth, start, items = 0, opened, []
    for at in range(opened, len(line)):
        depth += (line[at] == "[") - (line[at] == "]")
        if (line[at] == "," and depth == 0) or depth < 0:
            items.append(line[start:at].strip())
            start = at + 1
            if depth < 0:
                return line[:opened] + "".join(f"\n    {item}," for item in items) + "\n" + line[at:]
    return line


def _imported(text: str) -> str:
    """The module without unused imports."""

    def used(line: "re.Match[str]") -> str:
        body = text.replace(line[0], "")
        names = [name for name in line[2].split(", ") if re.search(rf"\b{name}\b", body)]
        return f"from {line[1]} import {', '.join(names)}\n" if names else ""

    return re.sub(r"^from (typing|typing_extensions) import (.+)\n", used, text, flags=re.M)


def modules(content: Optional[Mapping[str, Any]] = None) -> Dict[str, str]:
    """Every generated module, by file name."""
    if content is None:
        content = json.loads(DOCUMENT.read_text("utf-8"))
    wire = Wire(Document(content))
    return {"wire.py": wire.text(), "decoded.py": Decoded(wire).text()}


if __name__ == "__main__":
    try:
        for file, written in modules().items():
            (PACKAGE / file).write_text(written, "utf-8")
    except Stale as error:
        sys.exit(str(error))
