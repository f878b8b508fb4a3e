"""Completions that are sent together, and the new tasks in the responses."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import unittest
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple
from unittest import mock

from fake import Answer, Fake, completed, task
from server import PATIENCE_S, shared, until

from flowfabric import Client, Context, TransportError, Worker, mint
from flowfabric.http.message import Request, Response
from flowfabric.aio.transport import AsyncTransport

Send = Callable[[], Awaitable[Response]]
#: Intercepts the requests of one verb: it forwards a request, or responds in place of the server.
Hook = Callable[[Dict[str, Any], Send], Awaitable[Response]]


class Wire:
    """All requests of a worker to its server, in order."""

    def __init__(self, hook: Optional[Hook] = None) -> None:
        self.said: List[Tuple[str, Dict[str, Any]]] = []
        self.answered: List[Dict[str, Any]] = []
        self.most_out = 0
        out = [0]
        wire = self

        class Recording(AsyncTransport):
            async def _try(self, request: Request) -> Response:
                verb = request.path.rsplit("/", 1)[1]
                said = json.loads(request.body or b"{}")
                wire.said.append((verb, said))
                send: Send = lambda: AsyncTransport._try(self, request)
                if verb != "results":
                    return await send()
                out[0] += 1
                wire.most_out = max(wire.most_out, out[0])
                try:
                    answer = await (hook(said, send) if hook else send())
                    wire.answered.append(answer.json())
                    return answer
                finally:
                    out[0] -= 1

        self.transport = mock.patch("flowfabric.runtime.AsyncTransport", Recording)

    def all(self, verb: str) -> List[Dict[str, Any]]:
        """All requests with this verb."""
        return [said for one, said in list(self.said) if one == verb]

    def sizes(self) -> List[int]:
        """The number of completions in each request."""
        return [len(said["results"]) for said in self.all("results")]


def refusal(said: Dict[str, Any], code: str, **fields: Any) -> Response:
    """A response that fails every result."""
    results = [{"execution_id": one["execution_id"], "code": code, "detail": "", **fields} for one in said["results"]]
    return Response(200, {}, json.dumps({"results": results, "tasks": []}).encode())


class FinishTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)

    def worker(self, hook: Optional[Hook] = None, **settings: Any) -> Tuple[Worker, Wire]:
        wire = Wire(hook)
        wire.transport.start()
        self.addCleanup(wire.transport.stop)
        return Worker(shared().url, lanes=[self.lane], **settings), wire

    def submit(self, count: int, kind: str = "k") -> List[str]:
        """Submits many at once, without waiting for any of them."""
        ids = []
        for item in self.client.submit_batch({"kind": kind, "lane": self.lane, "input": at} for at in range(count)):
            assert item.submitted is not None
            ids.append(item.submitted.execution_id)
        return ids

    def succeed(self, ids: List[str]) -> None:
        """Every execution succeeds at its first attempt."""
        for id in ids:
            self.assertEqual(self.client.result(id, PATIENCE_S).outcome, "success")
            self.assertEqual([one["state"] for one in self.client.get(id)["attempts"]], ["succeeded"])

    def test_many_quick_tasks_share_requests(self) -> None:
        async def quick(n: int) -> int:
            return n

        def in_a_thread(n: int) -> int:
            return n

        for handler in (quick, in_a_thread):
            with self.subTest(handler.__name__):
                worker, wire = self.worker(slots=32)
                worker.task("k")(handler)
                ids = self.submit(200)
                with worker.running():
                    self.succeed(ids)
                self.assertEqual(sum(wire.sizes()), 200)
                self.assertEqual(wire.all("complete"), [])
                self.assertLess(len(wire.sizes()), 100)
                self.assertLessEqual(max(wire.sizes()), 64)
                self.assertEqual(wire.most_out, 1)
                self.assertTrue(all(said["claim"]["max"] <= 32 for said in wire.all("results") if "claim" in said))

    def test_the_next_task_of_a_chain_comes_with_the_result_of_the_one_before(self) -> None:
        worker, wire = self.worker(slots=1)
        worker.task("k")(lambda: None)
        keys = [f"m{at}" for at in range(10)]
        with worker.running():
            until(lambda: wire.all("claim"), "it waits for work")
            flow = self.client.flows.submit(
                "chain",
                [{"key": key, "kind": "k", "lane": self.lane} for key in keys],
                [{"from": one, "to": other} for one, other in zip(keys, keys[1:])],
            )
            self.succeed([member["execution_id"] for member in flow["members"]])
        verbs = [verb for verb, _ in wire.said if verb in ("claim", "results")]
        first = verbs.index("results")
        self.assertEqual(verbs[first : first + 10], ["results"] * 10)
        ids = {said["claim"]["request_id"] for said in wire.all("results")}
        self.assertEqual(len(ids), 10, "each claim has an id of its own")

    def test_a_lost_answer_is_asked_for_again_and_takes_nothing_twice(self) -> None:
        runs: List[int] = []
        lost: List[Any] = []

        async def hook(said: Dict[str, Any], send: Send) -> Response:
            answer = await send()
            if not lost and answer.json()["tasks"]:
                lost.append(answer.json())
                raise TransportError("the answer is lost")
            return answer

        worker, wire = self.worker(hook, slots=2)

        @worker.task("k")
        def work(n: int) -> None:
            runs.append(n)

        ids = self.submit(8)
        with worker.running():
            self.succeed(ids)
        self.assertEqual(sorted(runs), list(range(8)))
        said = wire.all("results")
        at = next(at for at, one in enumerate(said) if one in said[at + 1 :])
        self.assertEqual(said[at], said[at + 1], "the same items and the same claim")
        again = wire.answered[at]
        self.assertTrue(all(one["replayed"] for one in again["results"]))
        leases = [[one["lease_id"] for one in answer["tasks"]] for answer in (lost[0], again)]
        self.assertEqual(leases[0], leases[1])

    def test_a_full_store_is_asked_again_until_it_takes_the_result(self) -> None:
        for code in ("store_full", "store_unavailable"):
            with self.subTest(code):
                runs: List[int] = []
                refused: List[float] = []

                async def hook(said: Dict[str, Any], send: Send) -> Response:
                    loop = asyncio.get_running_loop()
                    refused.append(loop.time())
                    # Longer than the lease lasts without a renewal.
                    if loop.time() - refused[0] < 2.0:
                        return refusal(said, code, retryable=True)
                    return await send()

                worker, wire = self.worker(hook, slots=1, lease_ttl_ms=1_000)

                @worker.task("k")
                def work(n: int) -> None:
                    runs.append(n)

                ids = self.submit(1)
                with worker.running():
                    self.succeed(ids)
                self.assertEqual(runs, [0])
                self.assertGreater(len(wire.sizes()), 2)
                self.assertTrue([said for said in wire.all("heartbeat") if said["renew"]])
                verbs = [verb for verb, _ in wire.said if verb in ("claim", "results")]
                self.assertEqual(verbs[1 : 1 + len(wire.sizes())], ["results"] * len(wire.sizes()), "its slot is taken")

    def test_tasks_that_come_after_the_stop_are_handed_back(self) -> None:
        runs: List[int] = []

        async def hook(said: Dict[str, Any], send: Send) -> Response:
            answer = await send()
            if not stopped.is_set():
                worker.stop()
                stopped.set()
                # The stop arrives before the response.
                await asyncio.sleep(0.1)
            return answer

        stopped = threading.Event()
        worker, wire = self.worker(hook, slots=1)

        @worker.task("k")
        def work(n: int) -> int:
            runs.append(n)
            return n

        ids = self.submit(2)
        with worker.running():
            self.assertTrue(stopped.wait(PATIENCE_S))
        (late,) = wire.answered[0]["tasks"]
        self.assertEqual((len(runs), len(wire.all("yield"))), (1, 1))
        self.assertEqual([one["state"] for one in self.client.get(late["execution_id"])["attempts"]], ["interrupted"])
        other = Worker(shared().url, lanes=[self.lane])
        other.task("k")(work)
        with other.running():
            for at, id in enumerate(ids):
                self.assertEqual(self.client.result(id, PATIENCE_S).value, at)
        self.assertEqual(sorted(runs), [0, 1])

    def test_tasks_that_come_after_a_drain_are_handed_back(self) -> None:
        async def hook(said: Dict[str, Any], send: Send) -> Response:
            answer = await send()
            if len(wire.sizes()) == 1:
                await asyncio.get_running_loop().run_in_executor(None, self.client.workers.drain, worker.instance)
                while not worker._runtime._draining:  # type: ignore[union-attr]
                    await asyncio.sleep(0.01)
            return answer

        runs: List[int] = []
        worker, wire = self.worker(hook, slots=1)
        worker.task("k")(runs.append)
        self.submit(2)
        with worker.running():
            until(lambda: wire.all("yield"), "what came is handed back")
        self.assertEqual(len(runs), 1)

    def test_a_large_result_travels_alone(self) -> None:
        ended: List[int] = []

        async def hook(said: Dict[str, Any], send: Send) -> Response:
            # The first request is in flight while the others end.
            while len(worker._runtime._finisher._waiting) < 12 and len(wire.sizes()) == 1:  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
            return await send()

        worker, wire = self.worker(hook, slots=13)

        @worker.task("k")
        async def work(n: int) -> str:
            while len(ended) < n:
                await asyncio.sleep(0.01)
            result = "x" * (70_000 if n == 2 else 60_000 if n > 3 else 10)
            # The tasks above end in this order.
            asyncio.get_running_loop().call_later(0.02, ended.append, n)
            return result

        ids = self.submit(13)
        with worker.running():
            self.succeed(ids)
        # The large one, and the one beyond 448 KiB, are sent separately.
        self.assertEqual(wire.sizes(), [1, 1, 1, 8, 2])

    def test_a_result_that_spoils_the_request_does_not_spoil_the_others(self) -> None:
        async def hook(said: Dict[str, Any], send: Send) -> Response:
            # The others wait for the first request, and are then sent together.
            while len(worker._runtime._finisher._waiting) < 3 and len(wire.sizes()) == 1:  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
            return await send()

        worker, wire = self.worker(hook, slots=4)

        @worker.task("k")
        async def work(n: int) -> Any:
            while n and not wire.sizes():
                await asyncio.sleep(0.01)
            deep: Any = n
            # Deep enough to be allowed only in a separate completion; then too deep for either.
            for _ in range({2: 63, 3: 64}.get(n, 0)):
                deep = [deep]
            return deep

        ids = self.submit(4)
        with worker.running():
            outcomes = [self.client.result(id, PATIENCE_S).outcome for id in ids[:3]]
            self.assertEqual(outcomes, ["success"] * 3)
            failure = self.client.result(ids[3], PATIENCE_S).failure
            assert failure is not None
            self.assertIn("the result is refused", failure.reason)
        self.assertEqual(wire.sizes(), [1, 3])

    def test_a_refusal_ends_its_own_completion_and_a_claim_that_fails_ends_none(self) -> None:
        runs: List[str] = []

        def claim(said: Dict[str, Any]) -> Answer:
            if len(fake.all("claim")) == 1:
                return 200, {"tasks": [task(name) for name in ("one", "stale", "two")]}
            return fake.nothing()

        def results(said: Dict[str, Any]) -> Answer:
            stale = {"code": "stale_lease", "detail": "it is another's", "retryable": False}
            answers = [{"execution_id": one["execution_id"], **stale} if one["execution_id"] == "stale" else completed(one)
                       for one in said["results"]]
            return 200, {"results": answers, "claim_error": {"code": "worker_not_registered", "detail": "", "retryable": False}}

        fake = Fake(claim=claim, results=results)
        self.addCleanup(fake.close)
        worker = Worker(fake.url, lanes=["l"], slots=3)

        @worker.task("k")
        def work(ctx: Context) -> None:
            runs.append(ctx.execution_id)

        with worker.running():
            until(lambda: len(fake.completed()) == 3, "all are sent")
            until(lambda: len(fake.all("claim")) >= 2, "their slots are free")
        self.assertEqual(sorted(fake.completed()), ["one", "stale", "two"], "each is sent once")
        self.assertEqual([verb for verb, _ in fake.said if verb in ("fail", "complete", "yield")], [])

    def test_one_task_too_many_is_handed_back(self) -> None:
        def claim(said: Dict[str, Any]) -> Answer:
            return (200, {"tasks": [task("one")]}) if len(fake.all("claim")) == 1 else fake.nothing()

        def results(said: Dict[str, Any]) -> Answer:
            if len(fake.all("results")) == 1:
                full = {"execution_id": "one", "code": "store_full", "detail": "", "retryable": True}
                return 200, {"results": [full], "tasks": [task("two")]}
            return 200, {"results": [completed(one) for one in said["results"]], "tasks": []}

        runs: List[str] = []
        fake = Fake(claim=claim, results=results)
        self.addCleanup(fake.close)
        worker = Worker(fake.url, lanes=["l"], slots=1)

        @worker.task("k")
        def work(ctx: Context) -> None:
            runs.append(ctx.execution_id)

        with worker.running():
            until(lambda: len(fake.completed()) == 2, "the completion is repeated")
            until(lambda: fake.all("yield"), "there is no room for the other one")
        self.assertEqual((runs, fake.completed()), (["one"], ["one", "one"]))


if __name__ == "__main__":
    unittest.main()
