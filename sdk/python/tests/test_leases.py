"""Leases in rare cases: claims with a lost response, renewals that fail one by one or are missing in a response."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import unittest
from typing import Any, Dict, List

from fake import Answer, Fake, renewed, task
from server import PATIENCE_S, until

from flowfabric import Context, Worker
from flowfabric.http.origin import Origin
from flowfabric.lease import Lease
from flowfabric.runtime import Runtime, Settings
from flowfabric.task import Task

STALE = {"code": "stale_lease", "detail": "it is another's", "retryable": False}


class LeaseTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)

    def fake(self, **answers: Any) -> Fake:
        fake = Fake(**answers)
        self.addCleanup(fake.close)
        return fake

    def test_a_lease_of_a_claim_that_was_repeated_is_renewed_before_its_handler_runs(self) -> None:
        runs: List[str] = []

        def claim(said: Dict[str, Any]) -> Answer:
            asked = [one["request_id"] for one in fake.all("claim")]
            if len(asked) == 1:
                # The lease is granted, and the response is lost after a large part of the TTL.
                threading.Event().wait(0.4)
                return None
            if len(asked) == 2:
                return 200, {"tasks": [task("gone"), task("held")]}
            return fake.nothing()

        def heartbeat(said: Dict[str, Any]) -> Answer:
            leases = [
                {"execution_id": one["execution_id"], **STALE} if one["execution_id"] == "gone" else renewed(one)
                for one in said["renew"]
            ]
            beats.extend((one["execution_id"], list(runs)) for one in said["renew"])
            return 200, {"leases": leases, "draining": False}

        beats: List[Any] = []
        fake = self.fake(claim=claim, heartbeat=heartbeat)
        worker = Worker(fake.url, lanes=["l"], slots=4, lease_ttl_ms=2_000)

        @worker.task("k")
        def work(ctx: Context) -> None:
            runs.append(ctx.execution_id)

        with worker.running():
            until(lambda: fake.completed(), "the task that is held ends")
            until(lambda: len(beats) >= 2, "both were asked about")
        first, second = [one["request_id"] for one in fake.all("claim")][:2]
        self.assertEqual(first, second)
        self.assertEqual(runs, ["held"])
        self.assertIn(("held", []), beats, "it was asked about before it ran")

    def test_a_refusal_ends_its_own_lease_and_no_other(self) -> None:
        reasons: Dict[str, Any] = {}
        done = threading.Event()

        def claim(said: Dict[str, Any]) -> Answer:
            if len(fake.all("claim")) == 1:
                return 200, {"tasks": [task(name) for name in ("left-out", "foreign", "busy", "good")]}
            return fake.nothing()

        def heartbeat(said: Dict[str, Any]) -> Answer:
            beats.extend(one["execution_id"] for one in said["renew"])
            leases = []
            for one in said["renew"]:
                name = one["execution_id"]
                if name == "foreign":
                    leases.append({"execution_id": name, **STALE})
                elif name == "busy" and beats.count("busy") == 1:
                    leases.append({"execution_id": name, "code": "try_again", "detail": "", "retryable": True})
                elif name != "left-out" or beats.count("left-out") > 1:
                    leases.append(renewed(one))
            return 200, {"leases": leases, "draining": False}

        beats: List[str] = []
        fake = self.fake(claim=claim, heartbeat=heartbeat)
        worker = Worker(fake.url, lanes=["l"], slots=4, lease_ttl_ms=2_000)

        @worker.task("k")
        def work(ctx: Context) -> None:
            if ctx.execution_id == "foreign":
                ctx.cancelled.wait(PATIENCE_S)
            else:
                done.wait(PATIENCE_S)
            reasons[ctx.execution_id] = ctx.cancel_reason

        with worker.running():
            until(lambda: "foreign" in reasons, "the foreign lease is given up")
            until(lambda: beats.count("left-out") > 2 and beats.count("busy") > 2, "the others are renewed on")
            done.set()
            until(lambda: len(fake.completed()) == 3, "the others end")
        self.assertEqual(reasons, {"foreign": "lease_lost", "left-out": None, "busy": None, "good": None})

    def test_a_handler_that_renews_keeps_its_lease_when_the_store_is_busy(self) -> None:
        seen: List[Any] = []
        busy = {"code": "try_again", "detail": "", "retryable": True}

        def claim(said: Dict[str, Any]) -> Answer:
            return (200, {"tasks": [task("one")]}) if len(fake.all("claim")) == 1 else fake.nothing()

        def heartbeat(said: Dict[str, Any]) -> Answer:
            return 200, {"leases": [{"execution_id": one["execution_id"], **busy} for one in said["renew"]]}

        fake = self.fake(claim=claim, heartbeat=heartbeat)
        worker = Worker(fake.url, lanes=["l"])

        @worker.task("k")
        def work(ctx: Context) -> None:
            ctx.renew_lease()
            seen.append((ctx.cancel_reason, ctx.lease_healthy))

        with worker.running():
            until(lambda: fake.completed(), "the task ends")
        self.assertEqual(seen, [(None, True)])

    def test_a_coroutine_that_does_not_stop_is_not_handed_to_anybody_else(self) -> None:
        go = threading.Event()
        self.addCleanup(go.set)

        def claim(said: Dict[str, Any]) -> Answer:
            return (200, {"tasks": [task("one")]}) if len(fake.all("claim")) == 1 else fake.nothing()

        def heartbeat(said: Dict[str, Any]) -> Answer:
            return 200, {"leases": [{**renewed(one), "yield_requested": True} for one in said["renew"]]}

        fake = self.fake(claim=claim, heartbeat=heartbeat)
        worker = Worker(fake.url, lanes=["l"], lease_ttl_ms=1_000, stop_grace_s=0.1, drain_grace_s=0.1)

        @worker.task("k")
        async def work() -> None:
            while not go.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    cancelled.set()

        cancelled = threading.Event()
        with worker.running():
            self.assertTrue(cancelled.wait(PATIENCE_S))
            until(lambda: len(fake.all("claim")) == 2, "its slot is free again")
            go.set()
        self.assertEqual([verb for verb, _ in fake.said if verb in ("yield", "fail", "results", "complete", "cancel")], [])

    def test_a_worker_that_is_cancelled_leaves_nothing_behind(self) -> None:
        def claim(said: Dict[str, Any]) -> Answer:
            return (200, {"tasks": [task("one")]}) if len(fake.all("claim")) == 1 else fake.nothing()

        fake = self.fake(claim=claim)

        async def run(times: int) -> None:
            began, ended = asyncio.Event(), asyncio.Event()
            worker = Worker(fake.url, lanes=["l"], stop_grace_s=0.1, drain_grace_s=60.0 if times > 1 else 0.1)

            @worker.task("k")
            async def work() -> None:
                began.set()
                try:
                    await asyncio.sleep(PATIENCE_S)
                finally:
                    ended.set()

            before = asyncio.all_tasks()
            running = asyncio.ensure_future(worker.run_async(handle_signals=False))
            await began.wait()
            for _ in range(times):
                running.cancel()
                await asyncio.wait([running], timeout=0.05)
            with self.assertRaises(asyncio.CancelledError):
                await running
            await ended.wait()
            await asyncio.sleep(0)
            self.assertEqual(asyncio.all_tasks() - before, set())

        for times, said in ((1, ["yield"]), (2, [])):
            fake.said.clear()
            asyncio.run(asyncio.wait_for(run(times), PATIENCE_S))
            self.assertEqual([verb for verb, _ in fake.said if verb in ("yield", "fail", "results", "complete", "cancel")], said)
            self.assertEqual(len(fake.all("leave")), 1)

    def test_a_server_that_answers_at_once_is_not_asked_without_a_pause(self) -> None:
        fake = self.fake(claim=lambda said: (200, {"tasks": []}), attend=lambda said: (200, {"draining": False}))
        worker = Worker(fake.url, lanes=["l"])
        worker.task("k")(lambda: None)
        with worker.running():
            began = time.monotonic()
            until(lambda: len(fake.all("claim")) >= 3 and len(fake.all("attend")) >= 3, "it is asked again")
            times = int((time.monotonic() - began) / 0.2) + 2
            self.assertLessEqual(len(fake.all("claim")), times)
            self.assertLessEqual(len(fake.all("attend")), times)

    def test_many_leases_are_renewed_in_several_calls(self) -> None:
        fake = self.fake()

        async def work() -> None:
            settings = Settings("w", "i", "default", ["l"], [], 4096, 30_000, 0.1, 0.1)
            runtime = Runtime(Origin(fake.url), settings, {})
            for at in range(2_500):
                lease = Lease(Task.read(task(f"e-{at}")), 30.0, time.monotonic())
                runtime._book.add(lease)
            runtime._book.renew_soon()
            keeping = asyncio.ensure_future(runtime._keep())
            while any(lease.in_flight or lease.due <= time.monotonic() for lease in runtime._book.all()):
                await asyncio.sleep(0.02)
            keeping.cancel()
            await runtime._transport.close()

        asyncio.run(asyncio.wait_for(work(), PATIENCE_S))
        sizes = [len(one["renew"]) for one in fake.all("heartbeat")]
        self.assertEqual((max(sizes), sum(sizes)), (1_000, 2_500))


if __name__ == "__main__":
    unittest.main()
