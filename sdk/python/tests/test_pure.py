"""Tests without a server: payloads, typed inputs, handlers, leases with a moved clock, server-sent events, and retries."""

from __future__ import annotations

import dataclasses
import unittest
import uuid
from decimal import Decimal
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union

import server  # noqa: F401 - finds the package
import fake

from flowfabric import AsyncContext, ConfigError, Context, Json, Retry, TaskError, Token, Worker, mint
from flowfabric import errors, payload
from flowfabric.aio.context import _batches
from flowfabric.decode import decode
from flowfabric.handler import Handler
from flowfabric.http.lines import SentEvent, SentEvents
from flowfabric.http.message import Request, Response
from flowfabric.http.origin import Origin
from flowfabric.lease import CancelReason, Lease, LeaseBook
from flowfabric.task import Task


@dataclasses.dataclass
class Address:
    street: str
    number: int = 1


@dataclasses.dataclass
class Person:
    name: str
    homes: List[Address]
    note: Optional[str] = None


class Job(TypedDict):
    url: str
    depth: int


class Payloads(unittest.TestCase):
    def test_what_is_put_is_taken(self) -> None:
        for value in ({"a": 2**70}, [1, None], "é", 0, False, b"\x00\xff", b"", Json([b is None for b in [None]])):
            body: Dict[str, Any] = {}
            payload.put(body, "result", value)
            expected = value.value if isinstance(value, Json) else value
            self.assertEqual(payload.take(body["result"], body.get("result_encoding")), expected)

    def test_none_is_nothing_and_json_none_is_null(self) -> None:
        body: Dict[str, Any] = {}
        payload.put(body, "result", None)
        self.assertEqual(body, {})
        payload.put(body, "result", Json(None))
        self.assertEqual(body, {"result": None, "result_encoding": "json"})

    def test_a_dataclass_is_an_object_and_other_things_are_refused(self) -> None:
        self.assertEqual(payload.dump({"a": Address("x")}), b'{"a":{"street":"x","number":1}}')
        for wrong in (object(), float("nan"), {1, 2}):
            with self.assertRaises(ConfigError):
                payload.dump(wrong)

    def test_numbers_of_any_length_are_read_exactly(self) -> None:
        digits = "7" * 5_000
        self.assertEqual(payload.load(f"[1,-{digits},2]".encode()), [1, Decimal(f"-{digits}"), 2])
        self.assertEqual(payload.load(b"[" + b"9" * 4_300 + b"]"), [10**4_300 - 1])
        for wrong in (b"{", b"[1,]", b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000):
            with self.assertRaises(ValueError):
                payload.load(wrong)

    def test_half_a_surrogate_pair_goes_out_as_it_came_in(self) -> None:
        self.assertEqual(payload.dump(payload.load(b'["\\ud800","x"]')), b'["\\ud800","x"]')

    def test_what_one_task_of_a_claim_carries_does_not_hide_the_others(self) -> None:
        deep = b'{"a":' * 100_000 + b'"]}\\""' + b"}" * 100_000
        numbers = b"[" + b"1" * 5_000 + b"]"

        def task(name: bytes, carried: bytes) -> bytes:
            plain = {key: value for key, value in fake.task(name.decode()).items() if key != "tags"}
            return payload.dump(plain)[:-1] + b',"tags":{},' + carried + b"}"

        carried = [b'"input":' + deep, b'"input":[[1]]', b'"passed":{"x":{"value":%s}}' % deep, b'"input":' + numbers,
                   b'"input":"A","input_encoding":"base64"', b'"tags":[1],"resume":3']
        body = b'{"tasks":[%s]}' % b",".join(task(b"e%d" % at, one) for at, one in enumerate(carried))
        tasks = [Task.claimed(one) for one in Response(200, {}, body).tasks()]
        self.assertEqual([one.execution_id for one in tasks], [f"e{at}" for at in range(6)])
        self.assertEqual([one.unreadable is None for one in tasks], [False, True, False, True, False, False])
        self.assertEqual((tasks[1].input, tasks[3].input), ([[1]], [Decimal("1" * 5_000)]))
        self.assertIn("input nests deeper", str(tasks[0].unreadable))

    def test_minted_ids_are_version_7_and_ordered_by_time(self) -> None:
        ids = [mint() for _ in range(100)]
        self.assertEqual({uuid.UUID(one).version for one in ids}, {7})
        self.assertEqual(len(set(ids)), 100)
        self.assertLessEqual(ids[0][:13], ids[-1][:13])

    def test_a_token_is_not_shown(self) -> None:
        self.assertNotIn("secret", repr({"token": Token("secret")}))
        self.assertEqual(f"{Token('secret')}", "secret")


class TypedInputs(unittest.TestCase):
    def test_what_fits_becomes_the_type(self) -> None:
        rows = [
            (3, int, 3), (3, float, 3.0), ("x", str, "x"), ([1], List[int], [1]), (None, Optional[int], None),
            ({"a": [1]}, Dict[str, List[int]], {"a": [1]}), ({"a": 1}, dict, {"a": 1}), (7, Any, 7),
            ({"street": "s"}, Address, Address("s", 1)),
            ({"name": "n", "homes": [{"street": "s", "number": 2}]}, Person, Person("n", [Address("s", 2)])),
            ({"url": "u", "depth": 1}, Job, {"url": "u", "depth": 1}), ("x", Union[int, str], "x"),
        ]
        for value, wanted, expected in rows:
            self.assertEqual(decode(value, None, wanted), expected, wanted)

    def test_what_does_not_fit_names_the_place(self) -> None:
        rows = [
            ("3", int, "input must be an integer"), (True, int, "integer"), ({}, Address, "input.street is missing"),
            ({"street": "s", "town": "t"}, Address, "no field 'town'"), ({"url": "u"}, Job, "input.depth is missing"),
            ({"name": "n", "homes": [{"street": 1}]}, Person, "input.homes[0].street"), ([1, "x"], List[int], "input[1]"),
        ]
        for value, wanted, text in rows:
            with self.assertRaises(TaskError) as raised:
                decode(value, None, wanted)
            self.assertEqual(raised.exception.category, "extractor_payload_decode")
            self.assertIn(text, raised.exception.reason)

    def test_collections_are_read_with_and_without_what_is_in_them(self) -> None:
        home = {"street": "x"}
        for wanted in (List, Sequence, list):
            self.assertEqual(decode([1, "a"], None, wanted), [1, "a"])
        for wanted in (Dict, Mapping, dict):
            self.assertEqual(decode({"a": 1}, None, wanted), {"a": 1})
        self.assertEqual(decode([1, 2], None, Tuple), (1, 2))
        self.assertEqual(decode([home], None, Sequence[Address]), [Address("x")])
        self.assertEqual(decode({"a": home}, None, Mapping[str, Address]), {"a": Address("x")})
        with self.assertRaises(TaskError):
            decode([1], None, Sequence[str])

    def test_bytes_stay_bytes(self) -> None:
        self.assertEqual(decode(None, b"null", bytes), b"null")
        self.assertEqual(decode(b"\xff", b"\xff", bytes), b"\xff")
        self.assertEqual(decode("text", None, bytes), b"text")
        self.assertEqual(decode(b"text", b"text", str), "text")


class Handlers(unittest.TestCase):
    def test_a_handler_takes_its_input_its_context_or_both(self) -> None:
        def nothing() -> None: ...
        def only_input(value: int) -> None: ...
        def by_name(value, ctx) -> None: ...  # type: ignore[no-untyped-def]
        def by_type(doing: Context, value: int, more: int = 3) -> None: ...
        async def in_loop(ctx: AsyncContext) -> None: ...

        rows: List[Any] = [(nothing, []), (only_input, ["input"]), (by_name, ["input", "context"]),
                (by_type, ["context", "input"]), (in_loop, ["context"])]
        for function, places in rows:
            self.assertEqual(Handler("k", function)._places, places, function.__name__)

    def test_an_object_that_is_called_with_await_is_async(self) -> None:
        class Callable_:
            async def __call__(self, given: int) -> int:
                return given

        self.assertTrue(Handler("k", Callable_()).is_async)
        self.assertFalse(Handler("k", lambda given: given).is_async)

    def test_frames_are_sent_in_batches_a_server_takes(self) -> None:
        frames = [{"type": "t", "payload": "\u6f22" * 60_000} for _ in range(40)]
        batches = _batches(frames)
        self.assertEqual(sum(map(len, batches)), 40)
        self.assertLessEqual(max(len(payload.dump(batch)) for batch in batches), 2 * 1024 * 1024 + 1024)

    def test_a_handler_that_cannot_be_called_is_refused_at_once(self) -> None:
        def two_inputs(a: int, b: int) -> None: ...
        def wrong_context(ctx: AsyncContext) -> None: ...
        def keyword(a: int, *, b: int) -> None: ...

        for function in (two_inputs, wrong_context, keyword):
            with self.assertRaises(ConfigError):
                Handler("k", function)

    def test_a_worker_refuses_wrong_settings(self) -> None:
        rows: List[Dict[str, Any]] = [
            {"lanes": []}, {"lanes": "x"}, {"lanes": ["a b"]}, {"slots": 0}, {"lease_ttl_ms": 999},
            {"capabilities": ["a,b"]}, {"instance": "a/b"}, {"url": "ftp://x"},
        ]
        for row in rows:
            with self.assertRaises(ConfigError, msg=str(row)):
                Worker(**row)
        worker = Worker()
        worker.task("k")(lambda: None)
        with self.assertRaises(ConfigError):
            worker.task("k")(lambda: None)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Leases(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.book = LeaseBook(self.clock)

    def lease(self, name: str, sent: float) -> Lease:
        lease = Lease(Task.read(fake.task(name)), 30.0, sent, self.clock)
        self.book.add(lease)
        return lease

    def test_a_lease_is_trusted_for_four_fifths_of_its_ttl_after_the_last_acknowledged_renewal_was_sent(self) -> None:
        lease = self.lease("a", sent=999.0)
        self.clock.now = 1022.9
        self.assertTrue(lease.trusted)
        lease.renewed(1010.0, {})
        self.clock.now = 1033.9
        self.assertEqual(self.book.distrust(), [])
        self.clock.now = 1034.0
        told: List[str] = []
        lease.on_told(lambda: told.append("now"))
        self.assertEqual(self.book.distrust(), [lease])
        self.assertEqual((lease.reason, told, self.book.all()), (CancelReason.LEASE_LOST, ["now"], []))

    def test_a_lease_is_renewed_every_third_of_its_ttl_and_nearly_due_ones_go_with_it(self) -> None:
        one, other, late = self.lease("a", 1000.0), self.lease("b", 999.0), self.lease("c", 1000.0)
        late.due = 1020.0
        self.assertEqual(self.book.take_due(), [])
        self.clock.now = 1010.0
        self.assertEqual(set(self.book.take_due()), {one, other})
        self.assertEqual(self.book.take_due(), [], "they are under way")
        one.unanswered()
        self.assertLess(one.due, 1013.0)
        self.assertEqual(self.book.next_event(), one.due)

    def test_a_claim_that_waited_is_renewed_soon(self) -> None:
        self.assertAlmostEqual(self.lease("a", sent=980.0).due, 1000.1)

    def test_a_lost_lease_outweighs_every_other_reason(self) -> None:
        lease = self.lease("a", 1000.0)
        lease.renewed(1001.0, {"cancel_requested": True})
        lease.renewed(1002.0, {"yield_requested": True})
        self.assertEqual(lease.reason, CancelReason.CANCEL_REQUESTED)
        lease.refused()
        self.assertEqual((lease.reason, lease.trusted), (CancelReason.LEASE_LOST, False))

    def test_three_failures_in_a_row_are_unhealthy(self) -> None:
        lease = self.lease("a", 1000.0)
        for healthy in (True, True, False):
            lease.unanswered()
            self.assertEqual(lease.healthy, healthy)
        lease.renewed(1001.0, {})
        self.assertTrue(lease.healthy)


class Wire(unittest.TestCase):
    def test_events_are_read_out_of_lines(self) -> None:
        events = SentEvents()
        lines = b":\n\nid: 1-2\nevent: frame\ndata: {\"a\":\ndata: 1}\n\ndata: x\r\n\r\n".splitlines(keepends=True)
        read = [event for event in map(events.feed, lines) if event]
        self.assertEqual(read, [SentEvent("1-2", "frame", '{"a":\n1}'), SentEvent("1-2", "message", "x")])

    def test_only_what_is_safe_is_repeated(self) -> None:
        retry, safe, unsafe = Retry(tries=3), Request("POST", "/"), Request("POST", "/", repeatable=False)
        lost, unreached = errors.TransportError("x"), errors.TransportError("x", sent=False)
        refused, busy = errors.of_problem(409, {"code": "x"}), errors.of_problem(503, {"code": "x"})
        rows = [(safe, lost, True), (unsafe, lost, False), (unsafe, unreached, True), (safe, refused, False),
                (unsafe, busy, True), (Request("GET", "/", once=True), lost, False)]
        for request, error, again in rows:
            self.assertEqual(retry.again(request, 1, error), again, (request, error))
        self.assertFalse(retry.again(safe, 3, lost))

    def test_every_class_of_code_has_its_error(self) -> None:
        rows = [
            (400, "invalid_argument", errors.InvalidRequest), (401, "unauthenticated", errors.Unauthenticated),
            (403, "forbidden", errors.Forbidden), (404, "execution_not_found", errors.NotFound),
            (409, "idempotency_conflict", errors.Conflict), (409, "stale_lease", errors.LeaseLost),
            (410, "cursor_expired", errors.CursorExpired), (413, "too_large", errors.TooLarge),
            (429, "lane_full", errors.Unavailable), (503, "store_unavailable", errors.Unavailable),
            (507, "store_full", errors.Unavailable), (500, "internal", errors.ServerFault),
        ]
        for status, code, kind in rows:
            error = errors.of_answer(status, {"retry-after": "2"}, b'{"code":"%s","detail":"d"}' % code.encode())
            self.assertIs(type(error), kind)
            self.assertEqual((error.code, error.status, error.detail, error.retry_after), (code, status, "d", 2.0))
        self.assertEqual(errors.of_answer(502, {}, b"<html>").code, "http_502")

    def test_a_wrong_url_is_said_to_be_wrong(self) -> None:
        for url in ("http://h:port", "http://h:99999", "http://:secret@h", "h:1", "ftp://h"):
            with self.assertRaises(ConfigError, msg=url):
                Origin(url)

    def test_an_url_may_have_a_prefix_and_no_credentials(self) -> None:
        origin = Origin("http://h:1/api/", "t")
        self.assertEqual(origin.target("/v1/x", {"a": 1, "b": None, "c": "ä b"}), "http://h:1/api/v1/x?a=1&c=%C3%A4+b")
        self.assertEqual(origin.headers({}, False)["Authorization"], "Bearer t")
        self.assertNotIn("t", repr(origin).replace("http", ""))
        for wrong in (("http://user:pass@h", None), ("http://h", "a\r\nb")):
            with self.assertRaises(ConfigError):
                Origin(*wrong)


if __name__ == "__main__":
    unittest.main()
