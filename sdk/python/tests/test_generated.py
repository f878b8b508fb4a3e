"""Generated files are up to date, and the types match every form of schema."""

from __future__ import annotations

import sys
import types
import typing
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Dict, Mapping

import server  # noqa: F401 - finds the package

import flowfabric.wire

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import blocking  # noqa: E402
import wire  # noqa: E402


class Generated(unittest.TestCase):
    def test_the_blocking_package_is_up_to_date(self) -> None:
        for name, text in blocking.modules().items():
            self.assertEqual((blocking.TARGET / name).read_text("utf-8"), text, f"{name}: run sdk/python/tools/blocking.py")
        self.assertEqual({path.name for path in blocking.TARGET.glob("*.py")}, set(blocking.modules()))

    def test_the_types_are_those_of_the_document(self) -> None:
        stale = [name for name, text in wire.modules().items() if (wire.PACKAGE / name).read_text("utf-8") != text]
        self.assertEqual(stale, [], "docs/reference/openapi.json has changed: run `python sdk/python/tools/wire.py`")

    def test_every_field_of_the_document_is_typed(self) -> None:
        document = wire.Document(wire.json.loads(wire.DOCUMENT.read_text("utf-8")))
        for name in ("Execution", "ExecutionSummary", "FlowShown", "Budget", "Quota", "Lane", "Worker", "Explanation"):
            fields = document.fields(document.schema(name))
            typed: Any = getattr(flowfabric.wire, name)
            self.assertEqual(set(typing.get_type_hints(typed)), set(fields), name)
            required = {field.name for field in fields.values() if field.required}
            self.assertEqual(set(typed.__required_keys__), required, name)


def made(schemas: Mapping[str, Any], requested: str = "") -> Dict[str, Any]:
    """The names in a module generated from these schemas. One of them may be the body of a request."""
    content = {"schema": {"$ref": f"#/components/schemas/{requested}"}} if requested else {}
    paths = {"/x": {"post": {"requestBody": {"content": {"application/json": content}}}}}
    document = wire.Document({"components": {"schemas": schemas}, "paths": paths})
    module = types.ModuleType("made")
    sys.modules["made"] = module
    with unittest.mock.patch.multiple(wire, ARGUMENTS={}, FILTERS={}):
        exec(compile(wire.Wire(document).text(), "made", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def ref(name: str) -> Mapping[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


class FromAnyDocument(unittest.TestCase):
    def field(self, schema: Any, request: bool = False, **others: Any) -> str:
        """The generated type of a field."""
        schemas = {"A": {"type": "object", "properties": {"f": schema}, "required": ["f"]}, **others}
        hints = typing.get_type_hints(made(schemas, "A" if request else "")["A"])
        return str(hints["f"]).replace("typing.", "").replace("wire.", "").replace("<class '", "").replace("'>", "")

    def test_each_form_of_a_schema_has_its_type(self) -> None:
        text, null = {"type": "string"}, {"type": "null"}
        rows = [
            (text, "str"), ({"type": "integer"}, "int"), ({"type": "number"}, "float"), ({"type": "boolean"}, "bool"),
            ({}, "Any"), (True, "Any"), ({"type": "strange"}, "Any"), ({"description": "no type"}, "Any"), (null, "NoneType"),
            ({"type": ["string", "null"]}, "Optional[str]"), ({"type": "string", "nullable": True}, "Optional[str]"),
            ({"oneOf": [text, null]}, "Optional[str]"), ({"anyOf": [null, {"type": "integer"}]}, "Optional[int]"),
            ({"oneOf": [text, {"type": "integer"}, null]}, "Union[str, int, NoneType]"),
            ({"oneOf": [text, {}]}, "Any"), ({"enum": ["a", "b"]}, "Literal['a', 'b']"), ({"const": "a"}, "Literal['a']"),
            ({"enum": ["a", None]}, "Optional[Literal['a']]"), ({"type": "array", "items": text}, "List[str]"),
            ({"type": "array"}, "List[Any]"), ({"type": "object"}, "Dict[str, Any]"),
            ({"type": ["array", "null"], "items": text}, "Optional[List[str]]"),
            ({"type": "object", "additionalProperties": {"type": ["integer", "null"]}}, "Dict[str, Optional[int]]"),
            ({"type": "object", "additionalProperties": True}, "Dict[str, Any]"), (ref("Id"), "str"),
            ({"allOf": [ref("Id")]}, "str"), ({"allOf": [{"description": "d"}, ref("Id")]}, "str"), ({"oneOf": [ref("Id"), null]}, "Optional[str]"), (ref("Ids"), "List[str]"),
        ]
        for schema, expected in rows:
            others = {"Id": {"type": "string"}, "Ids": {"type": "array", "items": ref("Id")}}
            self.assertEqual(self.field(schema, **others), expected, schema)

    def test_a_request_takes_any_list_and_any_mapping(self) -> None:
        self.assertEqual(self.field({"type": "array", "items": {"type": "string"}}, request=True), "Sequence[str]")
        self.assertEqual(self.field(ref("M"), True, M={"type": "object", "additionalProperties": {"type": "integer"}}), "Mapping[str, int]")

    def test_absent_and_null_are_two_things(self) -> None:
        properties = {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": ["string", "null"]}}
        record = made({"A": {"type": "object", "properties": properties, "required": ["a", "c"]}})["A"]
        self.assertEqual((record.__required_keys__, record.__optional_keys__), ({"a", "c"}, {"b"}))

    def test_a_whole_has_the_fields_of_its_parts(self) -> None:
        base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        more = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
        again = {"type": "object", "properties": {"a": {"type": "integer"}}}
        either = {"oneOf": [base, {"type": "object", "properties": {"c": {"type": "string"}}, "required": ["c"]}]}
        names = made({
            "Base": base, "Either": either,
            "Extended": {"allOf": [ref("Base"), more]},
            "Changed": {"allOf": [ref("Base"), again]},
            "Spread": {"allOf": [ref("Either"), more]},
        })
        self.assertEqual(names["Extended"].__required_keys__, {"a", "b"})
        self.assertEqual(typing.get_type_hints(names["Changed"]), {"a": int})
        self.assertEqual((names["Spread"].__required_keys__, names["Spread"].__optional_keys__), ({"b"}, {"a", "c"}))

    def test_a_schema_may_contain_itself_and_keywords(self) -> None:
        node = {"type": "object", "properties": {"from": ref("Node"), "of": {"oneOf": [ref("Node"), {"type": "null"}]}}}
        names = made({"Node": node, "Tree": {"oneOf": [{"type": "object", "properties": {"all": {"type": "array", "items": ref("Tree")}}},
                                                       {"type": "object", "properties": {"leaf": {"type": "string"}}}]}})
        self.assertEqual(set(names["Node"].__annotations__), {"from", "of"})
        self.assertEqual(typing.get_args(names["Tree"]), (names["TreeAll"], names["TreeLeaf"]))

    def test_a_payload_of_a_request_has_no_encoding_and_an_answer_has(self) -> None:
        schema = {"type": "object", "properties": {"input": {}, "input_encoding": {"type": "string"}, "encoding": {"type": "string"}}}
        self.assertEqual(set(made({"A": schema}, "A")["A"].__annotations__), {"input", "encoding"})
        self.assertEqual(set(made({"A": schema})["A"].__annotations__), {"input", "input_encoding", "encoding"})

    def test_what_the_document_lacks_is_said(self) -> None:
        with self.assertRaisesRegex(wire.Stale, "has no schema SubmitBody"):
            wire.modules({"components": {"schemas": {}}, "paths": {}})
        with self.assertRaisesRegex(wire.Stale, "has no schema Gone"):
            made({"A": ref("Gone")})


if __name__ == "__main__":
    unittest.main()
