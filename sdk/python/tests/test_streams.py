"""Frames written by handlers, and readers that miss none."""

from __future__ import annotations

import logging
import threading
import unittest
from typing import Any, List

from server import PATIENCE_S, Proxy, shared

from flowfabric import Client, Context, RetryPolicy, TaskError, Worker, mint


class StreamsTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=4)

    def test_frames_are_read_in_order_with_their_payloads(self) -> None:
        @self.worker.task("writes")
        def writes(ctx: Context) -> Any:
            first = ctx.frame("note", {"n": 0}, correlation_id="c")
            ids = ctx.frames([{"type": "note", "payload": {"n": n}} for n in range(1, 70)] + [{"type": "end"}])
            ctx.frame("raw", b"\x00\x01", mode="durable")
            ctx.summary({"done": 1, "parts": []})
            ctx.summary({"done": 2})
            page = ctx.read_stream(limit=2)
            return [first, len(ids), page.frames[0].payload, page.frames[0].correlation_id]

        with self.worker.running():
            id = self.client.submit("writes", lane=self.lane).execution_id
            first, count, payload, correlation = self.client.result(id, PATIENCE_S).value
        self.assertEqual((count, payload, correlation), (70, {"n": 0}, "c"))
        page = self.client.read_stream(id, 0, limit=1000)
        self.assertEqual([frame.sequence for frame in page.frames][:72], list(range(72)))
        self.assertEqual(page.frames[0].id, first)
        self.assertEqual((page.frames[71].payload, page.closed_reason), (b"\x00\x01", "succeeded"))
        self.assertEqual(self.client.read_stream(id, 0, after=page.frames[69].id or "", limit=2).frames[0].type, "end")
        self.assertEqual(self.client.summary(id), {"done": 2, "parts": []})

    def test_a_reader_follows_all_attempts_until_the_end(self) -> None:
        @self.worker.task("twice")
        def twice(ctx: Context) -> None:
            ctx.frame("note", ctx.attempt_index)
            if ctx.attempt_index == 0:
                raise TaskError("again")

        retry: RetryPolicy = {"max_attempts": 2, "backoff": {"type": "fixed", "delay_ms": 10}, "jitter": "none"}
        id = self.client.submit("twice", lane=self.lane, retry=retry).execution_id
        with self.worker.running():
            frames = list(self.client.stream(id))
        self.assertEqual([frame.event for frame in frames], ["frame", "attempt_superseded", "frame", "closed"])
        self.assertEqual([frame.payload for frame in frames if frame.event == "frame"], [0, 1])

    def test_a_reader_whose_connection_breaks_goes_on_where_it_was(self) -> None:
        proxy = Proxy(shared().port)
        self.addCleanup(proxy.close)
        reader = Client(proxy.url)
        self.addCleanup(reader.close)
        go = threading.Semaphore(0)

        @self.worker.task("chatty")
        def chatty(ctx: Context) -> None:
            for n in range(6):
                ctx.frame("n", n)
                go.acquire(timeout=PATIENCE_S)

        seen: List[Any] = []
        with self.worker.running():
            id = self.client.submit("chatty", lane=self.lane).execution_id
            for frame in reader.stream(id):
                if frame.event == "frame":
                    seen.append(frame.payload)
                    if len(seen) in (2, 4):
                        proxy.drop()
                    go.release()
        self.assertEqual(seen, list(range(6)), "none is missing and none comes twice")

    def test_events_go_on_after_a_broken_connection(self) -> None:
        proxy = Proxy(shared().port)
        self.addCleanup(proxy.close)
        reader = Client(proxy.url)
        self.addCleanup(reader.close)
        ids = [self.client.submit("k", n, lane=self.lane).execution_id for n in range(3)]
        seen = []
        for event in reader.events("start", lane=self.lane, types=["execution.submitted"], limit=6):
            seen.append(event.execution_id)
            if len(seen) == 3:
                proxy.drop()
                ids += [self.client.submit("k", n, lane=self.lane).execution_id for n in range(3)]
        self.assertEqual(sorted(map(str, seen)), sorted(ids))


if __name__ == "__main__":
    unittest.main()
