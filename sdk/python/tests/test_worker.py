"""Handlers in threads: their arguments, the ends of their tasks, how they are told to stop, and how a worker shuts down."""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, List

from server import PATIENCE_S, SDK, shared, until

from flowfabric import Client, Context, NonRetryable, Replaced, RetryAfter, TaskError, Worker, mint
from flowfabric.http.message import Request

ONCE = {"max_attempts": 1}
TWICE = {"max_attempts": 2, "backoff": {"type": "fixed", "delay_ms": 10}, "jitter": "none"}


@dataclasses.dataclass
class Order:
    sku: str
    count: int = 1


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=4, lease_ttl_ms=3_000, stop_grace_s=1.0)

    def submit(self, kind: str, input: Any = None, **fields: Any) -> str:
        return self.client.submit(kind, input, lane=self.lane, **fields).execution_id

    def outcome(self, id: str) -> Any:
        return self.client.result(id, PATIENCE_S)

    def test_a_handler_gets_its_input_by_type_and_its_result_comes_back(self) -> None:
        @self.worker.task("order")
        def order(ordered: Order, ctx: Context) -> Order:
            ctx.progress(50, "packing")
            return Order(ordered.sku, ordered.count + 1)

        @self.worker.task("bytes")
        def reverse(data: bytes) -> bytes:
            return data[::-1]

        @self.worker.task("plain")
        def plain(ctx: Context) -> Any:
            return {"tags": dict(ctx.tags), "attempt": ctx.attempt_index, "fallback": ctx.task.fallback}

        with self.worker.running():
            id = self.submit("order", {"sku": "x"})
            self.assertEqual(self.outcome(id).value, {"sku": "x", "count": 2})
            progress = self.client.get(id)["progress"]
            self.assertEqual(progress and progress["pct"], 50)
            self.assertEqual(self.outcome(self.submit("bytes", b"\x00\xff")).value, b"\xff\x00")
            said = self.outcome(self.submit("plain", tags={"a": "b"})).value
            self.assertEqual(said["tags"], {"a": "b"})

    def test_a_failure_has_the_category_it_was_given(self) -> None:
        @self.worker.task("fails")
        def fails(how: str) -> None:
            if how == "own":
                raise TaskError("quota gone", "provider")
            if how == "bug":
                raise ValueError("wrong")
            if how == "exit":
                sys.exit(3)
            if how == "long":
                raise ValueError("ä" * 5000)

        @self.worker.task("typed")
        def typed(n: int) -> None: ...

        with self.worker.running():
            rows = [("own", "provider", "quota gone"), ("bug", "handler_error", "ValueError: wrong"),
                    ("exit", "handler_panic", "SystemExit: 3"), ("long", "handler_error", "ValueError: ä")]
            for how, category, reason in rows:
                failure = self.outcome(self.submit("fails", how, retry=ONCE)).failure
                self.assertEqual((failure.category, failure.reason[: len(reason)]), (category, reason))
            misfit = self.submit("typed", "x")
            self.assertEqual(self.outcome(misfit).failure.category, "extractor_payload_decode")
            self.assertEqual(len(self.client.get(misfit)["attempts"]), 1, "the same input would be refused again")

    def test_no_input_stops_a_worker(self) -> None:
        @self.worker.task("any")
        def anything(given: Any) -> str:
            if given == "\ud800":
                raise ValueError(given)
            return str(type(given).__name__)

        self.worker.task("echo")(lambda given: given)

        @self.worker.task("int")
        def integer(given: int) -> int:
            return given

        @self.worker.task("float")
        def floating(given: float) -> float:
            return given

        @self.worker.task("bytes")
        def raw(given: bytes) -> int:
            return len(given)

        digits, decode = "8" * 5_000, "extractor_payload_decode"
        rows = [
            ("any", digits, "Decimal"), ("int", digits, decode), ("echo", digits, "handler_error"),
            ("float", digits, decode), ("float", "1" * 400, decode), ("any", "1e400", "float"),
            ("any", "\"\\ud800\"", "handler_error"), ("echo", "\"\\ud800\"", "\ud800"), ("bytes", "\"\\ud800\"", decode),
            ("any", '{"a":1,"a":2}', "dict"), ("echo", "[" * 60 + "]" * 60, None), ("any", '"\\u0000"', "str"),
        ]
        ids = []
        for kind, text, _ in rows:
            said = f'{{"kind":"{kind}","lane":"{self.lane}","retry":{{"max_attempts":1}},"input":{text}}}'
            answer = self.client._transport.send(Request("POST", "/v1/executions", None, said.encode(), repeatable=False))
            ids.append(answer.json()["execution_id"])
        with self.worker.running():
            self.assertEqual(self.outcome(self.submit("any", 1)).value, "int")
            for id, (kind, text, expected) in zip(ids, rows):
                result = self.outcome(id)
                got = result.failure.category if result.failure else result.value
                if expected is not None:
                    self.assertEqual(got, expected, (kind, text[:20], result.failure))
                self.assertEqual(len(self.client.get(id)["attempts"]), 1, (kind, text[:20]))

    def test_a_failure_the_engine_refuses_fails_the_task_all_the_same(self) -> None:
        class Strange(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        @self.worker.task("k")
        def work(how: str) -> None:
            if how == "category":
                raise TaskError("quota gone", "x" * 5000)
            if how == "type":
                raise TaskError("quota gone", object())  # type: ignore[arg-type]
            if how == "time":
                raise RetryAfter("quota gone", -5)
            raise Strange

        with self.worker.running():
            for how in ("category", "type", "time"):
                failure = self.outcome(self.submit("k", how, retry=ONCE)).failure
                self.assertEqual((failure.category, failure.reason[:10]), ("handler_error", "quota gone"), how)
            self.assertIn("Strange", self.outcome(self.submit("k", "text", retry=ONCE)).failure.reason)

    def test_an_attempt_is_retried_unless_its_failure_says_otherwise(self) -> None:
        attempts: List[int] = []

        @self.worker.task("flaky")
        def flaky(ctx: Context) -> int:
            attempts.append(ctx.attempt_index)
            if ctx.attempt_index == 0:
                raise RetryAfter("busy", 20, "rate_limited")
            return ctx.attempt_index

        @self.worker.task("final")
        def final() -> None:
            raise NonRetryable("no such customer", "bad_input")

        with self.worker.running():
            self.assertEqual(self.outcome(self.submit("flaky", retry=TWICE)).value, 1)
            self.assertEqual(attempts, [0, 1])
            id = self.submit("final", retry=TWICE)
            self.assertEqual(self.outcome(id).failure.category, "bad_input")
            self.assertEqual(len(self.client.get(id)["attempts"]), 1)

    def test_a_result_that_is_refused_fails_the_task(self) -> None:
        self.worker.task("large")(lambda: b"x" * (1024 * 1024 + 1))
        self.worker.task("strange")(lambda: object())
        with self.worker.running():
            for kind in ("large", "strange"):
                self.assertEqual(self.outcome(self.submit(kind, retry=ONCE)).outcome, "failed", kind)

    def test_a_handler_may_delay_yield_and_cancel(self) -> None:
        runs: List[str] = []

        @self.worker.task("later")
        def later(ctx: Context) -> str:
            runs.append("later")
            if len(runs) == 1:
                ctx.delay(50)
            return "on time"

        @self.worker.task("back")
        def back(ctx: Context) -> str:
            runs.append("back")
            if runs.count("back") == 1:
                try:
                    ctx.yield_back()
                except BaseException:
                    return "this is not sent"
            return "second"

        @self.worker.task("never")
        def never(ctx: Context) -> None:
            ctx.cancel("out of date")

        with self.worker.running():
            self.assertEqual(self.outcome(self.submit("later", retry=ONCE)).value, "on time")
            self.assertEqual(self.outcome(self.submit("back", retry=ONCE)).value, "second")
            self.assertEqual(self.outcome(self.submit("never")).outcome, "cancelled")

    def test_a_lease_is_renewed_for_as_long_as_a_handler_runs(self) -> None:
        self.worker = Worker(shared().url, lanes=[self.lane], lease_ttl_ms=1_000)

        @self.worker.task("slow")
        def slow(ctx: Context) -> bool:
            time.sleep(2.2)
            ctx.renew_lease()
            return ctx.lease_healthy and not ctx.cancelled.is_set()

        with self.worker.running():
            id = self.submit("slow")
            self.assertIs(self.outcome(id).value, True)
        self.assertEqual(len(self.client.get(id)["attempts"]), 1)

    def test_a_cancel_with_grace_is_heard_by_the_handler(self) -> None:
        started = threading.Event()

        @self.worker.task("long")
        def long(ctx: Context) -> None:
            started.set()
            if not ctx.cancelled.wait(PATIENCE_S):
                raise AssertionError("nothing was heard")
            raise RuntimeError(f"stopped: {ctx.cancel_reason}")

        with self.worker.running():
            id = self.submit("long")
            self.assertTrue(started.wait(PATIENCE_S))
            self.assertEqual(self.client.cancel(id, "stop", grace_ms=20_000)["outcome"], "requested")
            self.assertEqual(self.outcome(id).outcome, "cancelled")

    def test_a_cancel_without_grace_ends_the_lease(self) -> None:
        started, reasons = threading.Event(), []

        @self.worker.task("long")
        def long(ctx: Context) -> str:
            started.set()
            ctx.cancelled.wait(PATIENCE_S)
            reasons.append(ctx.cancel_reason)
            return "too late"

        with self.worker.running():
            id = self.submit("long")
            self.assertTrue(started.wait(PATIENCE_S))
            self.client.cancel(id)
            until(lambda: reasons, "the handler heard")
        self.assertEqual(reasons, ["lease_lost"])
        self.assertEqual(self.client.result(id).outcome, "cancelled")

    def test_a_drained_worker_hands_back_what_it_holds_and_takes_nothing_new(self) -> None:
        self.worker = Worker(shared().url, lanes=[self.lane], lease_ttl_ms=30_000)
        started = threading.Event()

        @self.worker.task("long")
        def long(ctx: Context) -> str:
            if ctx.attempt_index == 0:
                started.set()
                ctx.cancelled.wait(PATIENCE_S)
                raise RuntimeError(str(ctx.cancel_reason))
            return "elsewhere"

        other = Worker(shared().url, lanes=[self.lane])
        other.task("long")(long)
        with self.worker.running():
            id = self.submit("long", retry=ONCE)
            self.assertTrue(started.wait(PATIENCE_S))
            began = time.monotonic()
            self.assertEqual(self.client.workers.drain(self.worker.instance), "draining")
            with other.running():
                self.assertEqual(self.outcome(id).value, "elsewhere")
            self.assertLess(time.monotonic() - began, 8.0, "it heard long before the next renewal was due")

    def test_a_lease_revoked_with_grace_is_handed_back(self) -> None:
        started, reasons = threading.Event(), []

        @self.worker.task("k")
        def work(ctx: Context) -> int:
            if ctx.attempt_index == 0:
                started.set()
                ctx.cancelled.wait(PATIENCE_S)
                reasons.append(ctx.cancel_reason)
                raise RuntimeError("handed back")
            return ctx.attempt_index

        with self.worker.running():
            id = self.submit("k", retry=ONCE)
            self.assertTrue(started.wait(PATIENCE_S))
            self.assertEqual(self.client.revoke_lease(id, "needed elsewhere", grace=True)["outcome"], "requested")
            self.assertEqual(self.outcome(id).value, 1)
        self.assertEqual(reasons, ["yield_requested"])

    def test_a_retry_sees_the_next_fallback(self) -> None:
        @self.worker.task("k")
        def work(ctx: Context) -> Any:
            if ctx.attempt_index < 2:
                raise TaskError("overloaded")
            return [ctx.task.fallback_index, ctx.task.fallback, ctx.task.attempt_type]

        retry = {**TWICE, "max_attempts": 3}
        with self.worker.running():
            id = self.submit("k", retry=retry, fallbacks=[{"model": "medium"}, {"model": "small"}])
            index, fallback, attempt = self.outcome(id).value
        self.assertEqual((fallback, attempt), ({"model": "small"}, "retry"), index)

    def test_an_attempt_that_takes_too_long_loses_its_lease(self) -> None:
        reasons: List[Any] = []

        @self.worker.task("k")
        def work(ctx: Context) -> str:
            if ctx.attempt_index == 0:
                ctx.cancelled.wait(PATIENCE_S)
                reasons.append(ctx.cancel_reason)
            return "in time"

        with self.worker.running():
            id = self.submit("k", retry=TWICE, attempt_timeout_ms=300)
            self.assertEqual(self.outcome(id).value, "in time")
        self.assertEqual(reasons, ["lease_lost"])
        self.assertEqual([one["state"] for one in self.client.get(id)["attempts"]], ["timed_out", "succeeded"])

    def test_slots_bound_what_runs_at_once(self) -> None:
        self.worker = Worker(shared().url, lanes=[self.lane], slots=2)
        lock, now, most = threading.Lock(), [0], [0]

        @self.worker.task("k")
        def work() -> None:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.05)
            with lock:
                now[0] -= 1

        with self.worker.running():
            items = self.client.submit_batch({"kind": "k", "lane": self.lane} for _ in range(8))
            for item in items:
                assert item.submitted is not None
                self.assertEqual(self.outcome(item.submitted.execution_id).outcome, "success")
        self.assertEqual(most, [2])

    def test_a_worker_that_is_replaced_says_so(self) -> None:
        self.worker.task("k")(lambda: 1)
        twin = Worker(shared().url, lanes=[self.lane], instance=self.worker.instance)
        twin.task("k")(lambda: 2)
        with self.worker.running():
            with self.assertRaises(Exception) as raised:
                twin.run()
            self.assertEqual(getattr(raised.exception, "code", None), "instance_in_use")
            self.assertNotIsInstance(raised.exception, Replaced)

    def test_a_worker_ends_what_it_runs_on_sigterm_and_leaves(self) -> None:
        code = (
            "import sys,time\nfrom flowfabric import Worker\n"
            "w = Worker(sys.argv[1], lanes=[sys.argv[2]], instance=sys.argv[3])\n"
            "@w.task('k')\ndef k():\n    print('began', flush=True); time.sleep(1.0); return 'ended'\n"
            "w.run()\nprint('left', flush=True)\n"
        )
        instance = f"term-{mint()[-8:]}"
        process = subprocess.Popen(
            [sys.executable, "-c", code, shared().url, self.lane, instance],
            env={**os.environ, "PYTHONPATH": str(SDK / "src")}, stdout=subprocess.PIPE, text=True,
        )
        try:
            id = self.submit("k")
            second = self.submit("k")
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline().strip(), "began")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.stdout.readline().strip(), "left")
            self.assertEqual(process.wait(PATIENCE_S), 0)
        finally:
            process.kill()
            process.communicate()
        ended = [self.client.get(one)["outcome"] for one in (id, second)]
        self.assertEqual(sorted(ended, key=str), [None, "success"], "it claimed no more")
        self.assertNotIn(instance, [worker["instance"] for worker in self.client.workers.list()])

    def test_a_program_that_sets_up_no_logging_sees_what_its_worker_does_and_where_it_failed(self) -> None:
        code = (
            "import sys\nfrom flowfabric import TaskError, Worker\n"
            "w = Worker(sys.argv[1], lanes=[sys.argv[2]], instance=sys.argv[3])\n"
            "@w.task('boom')\ndef boom():\n    return {}['missing']\n"
            "@w.task('later')\nasync def later():\n    return {}['later']\n"
            "@w.task('said')\ndef said():\n    raise TaskError('so it is', 'known')\n"
            "w.run()\n"
        )
        instance = f"loud-{mint()[-8:]}"
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory) / "loud.py"
            program.write_text(code)
            process = subprocess.Popen(
                [sys.executable, str(program), shared().url, self.lane, instance],
                env={**os.environ, "PYTHONPATH": str(SDK / "src")}, stderr=subprocess.PIPE, text=True,
            )
            try:
                for kind in ("boom", "later", "said"):
                    self.assertEqual(self.outcome(self.submit(kind, retry=ONCE)).outcome, "failed")
                process.send_signal(signal.SIGTERM)
                _, shown = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
                process.communicate()
        registered = f"{instance} is registered at {shared().url}: lanes {self.lane}, kinds boom, later, said, slots 1"
        self.assertIn(registered, shown)
        self.assertEqual(shown.count("Traceback"), 2, shown)
        for line in ('loud.py", line 6, in boom', "KeyError: 'missing'", 'loud.py", line 9, in later', "failed: so it is (known)"):
            self.assertIn(line, shown)

    def test_signals_are_heard_where_the_loop_hears_none(self) -> None:
        code = (
            "import asyncio,signal,sys,time\nfrom flowfabric import Worker\n"
            "def deaf(*_): raise NotImplementedError\n"
            "asyncio.SelectorEventLoop.add_signal_handler = deaf\n"
            "w = Worker(sys.argv[1], lanes=[sys.argv[2]])\n"
            "before = signal.getsignal(signal.SIGTERM)\n"
            "@w.task('k')\ndef k():\n    print('began', flush=True); time.sleep(0.3); return 'ended'\n"
            "w.run()\nprint('left', signal.getsignal(signal.SIGTERM) == before, flush=True)\n"
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen(
                [sys.executable, "-c", code, shared().url, self.lane],
                env={**os.environ, "PYTHONPATH": str(SDK / "src")}, stdout=subprocess.PIPE, text=True,
            )
            try:
                id = self.submit("k")
                assert process.stdout is not None
                self.assertEqual(process.stdout.readline().strip(), "began")
                process.send_signal(number)
                self.assertEqual(process.stdout.readline().strip(), "left True")
                self.assertEqual(process.wait(PATIENCE_S), 0)
            finally:
                process.kill()
                process.communicate()
            self.assertEqual(self.outcome(id).value, "ended")

    def test_a_shutdown_hands_back_what_does_not_end_in_time(self) -> None:
        self.worker = Worker(shared().url, lanes=[self.lane], drain_grace_s=0.2, stop_grace_s=1.0)
        started = threading.Event()

        @self.worker.task("k")
        def work(ctx: Context) -> None:
            started.set()
            ctx.cancelled.wait(PATIENCE_S)
            raise RuntimeError(str(ctx.cancel_reason))

        with self.worker.running():
            id = self.submit("k", retry=ONCE)
            self.assertTrue(started.wait(PATIENCE_S))
        shown = self.client.get(id)
        self.assertEqual((shown["outcome"], shown["attempts"][0]["state"]), (None, "interrupted"))


if __name__ == "__main__":
    unittest.main()
