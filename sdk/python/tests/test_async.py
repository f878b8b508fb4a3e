"""The same in asyncio: the client, handlers that are coroutines, and how they are stopped."""

from __future__ import annotations

import asyncio
import logging
import time
import unittest
from typing import Any, List

from server import PATIENCE_S, Proxy, Server, shared

from flowfabric import AsyncClient, AsyncContext, Context, NonRetryable, NotFound, Retry, TransportError, Worker, mint

ONCE: Any = {"max_attempts": 1}


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        # In debug mode, every step of the loop is slow on a busy machine.
        asyncio.get_running_loop().slow_callback_duration = PATIENCE_S
        self.lane = f"lane-{mint()[-8:]}"
        self.client = AsyncClient(shared().url)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=8, lease_ttl_ms=3_000, stop_grace_s=0.5)
        self.work: Any = None

    async def asyncTearDown(self) -> None:
        if self.work is not None:
            self.worker.stop()
            await asyncio.wait_for(self.work, PATIENCE_S)
        await self.client.close()

    async def start(self) -> None:
        ready = asyncio.Event()
        self.work = asyncio.ensure_future(self.worker.run_async(handle_signals=False, ready=ready.set))
        await asyncio.wait_for(ready.wait(), PATIENCE_S)

    async def outcome(self, kind: str, input: Any = None, **fields: Any) -> Any:
        id = (await self.client.submit(kind, input, lane=self.lane, **fields)).execution_id
        return await self.client.result(id, PATIENCE_S)

    async def test_handlers_run_as_tasks_next_to_each_other(self) -> None:
        now, most = [0], [0]

        @self.worker.task("k")
        async def work(n: int, ctx: AsyncContext) -> int:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await ctx.progress(10)
            await asyncio.sleep(0.2)
            now[0] -= 1
            return n * 2

        @self.worker.task("thread")
        def in_thread(n: int, ctx: Context) -> int:
            ctx.progress(10)
            return n + 1

        await self.start()
        ids = [(await self.client.submit("k", n, lane=self.lane)).execution_id for n in range(8)]
        results = await asyncio.gather(*(self.client.result(id, PATIENCE_S) for id in ids))
        self.assertEqual([result.value for result in results], [2 * n for n in range(8)])
        self.assertGreater(most[0], 1)
        self.assertEqual((await self.outcome("thread", 1)).value, 2)

    async def test_a_failure_has_its_category(self) -> None:
        @self.worker.task("k")
        async def work(how: str) -> None:
            if how == "exit":
                raise SystemExit(1)
            raise NonRetryable("no", "bad") if how == "own" else KeyError("x")

        await self.start()
        for how, category in (("own", "bad"), ("bug", "handler_error"), ("exit", "handler_panic")):
            self.assertEqual((await self.outcome("k", how, retry=ONCE)).failure.category, category)

    async def test_a_coroutine_waits_for_a_signal_and_children(self) -> None:
        opened: List[Any] = []

        @self.worker.task("k")
        async def work(ctx: AsyncContext) -> Any:
            if ctx.resume is None:
                opened.append(await ctx.create_pending_waitpoint("door"))
            got = await ctx.wait_for_signal("open")
            return got and got.payload

        @self.worker.task("parent")
        async def parent(ctx: AsyncContext) -> Any:
            await ctx.spawn([{"kind": "child", "key": "c", "input": n} for n in (1,)])
            return [child.result for child in await ctx.wait_children()]

        @self.worker.task("child")
        async def child(n: int) -> int:
            return n + 1

        await self.start()
        id = (await self.client.submit("k", lane=self.lane)).execution_id
        while (await self.client.get(id))["state"] != "suspended":
            await asyncio.sleep(0.02)
        inbox = [one async for one in self.client.waitpoints.of(id)]
        self.assertEqual([one["key"] for one in inbox], ["door"])
        await self.client.waitpoints.signal(opened[0].waitpoint_id, id, "open", opened[0].token, [1])
        self.assertEqual((await self.client.result(id, PATIENCE_S)).value, [1])
        self.assertEqual((await self.outcome("parent")).value, [2])

    async def test_a_flow_passes_values_on(self) -> None:
        @self.worker.task("one")
        async def one() -> int:
            return 1

        @self.worker.task("two")
        async def two(ctx: AsyncContext) -> int:
            return int(ctx.passed["one"]) + 1

        await self.start()
        flow = await self.client.flows.submit(
            "pair", [{"key": "a", "kind": "one"}, {"key": "b", "kind": "two"}],
            [{"from": "a", "to": "b", "pass_as": "one"}], default_lane=self.lane,
        )
        ended = await self.client.flows.wait(flow["flow_id"], PATIENCE_S)
        self.assertEqual(ended["state"], "completed")
        members = [member async for member in self.client.flows.members(flow["flow_id"])]
        self.assertEqual((await self.client.result(members[1]["execution_id"])).value, 2)

    async def test_frames_are_followed_over_broken_connections(self) -> None:
        proxy = Proxy(shared().port)
        self.addCleanup(proxy.close)
        reader = AsyncClient(proxy.url)
        go = asyncio.Semaphore(0)

        @self.worker.task("k")
        async def work(ctx: AsyncContext) -> None:
            for n in range(4):
                await ctx.frame("n", n)
                await asyncio.wait_for(go.acquire(), PATIENCE_S)

        await self.start()
        id = (await self.client.submit("k", lane=self.lane)).execution_id
        seen: List[Any] = []
        async for frame in reader.stream(id):
            if frame.event == "frame":
                seen.append(frame.payload)
                if len(seen) == 2:
                    proxy.drop()
                go.release()
        self.assertEqual(seen, [0, 1, 2, 3])
        events = [event async for event in reader.events("start", execution_id=id, limit=2)]
        self.assertEqual([event.type for event in events], ["execution.submitted", "execution.started"])
        await reader.close()

    async def test_a_coroutine_that_does_not_listen_is_cancelled(self) -> None:
        heard: List[str] = []

        @self.worker.task("k")
        async def work(ctx: AsyncContext) -> None:
            try:
                await asyncio.sleep(PATIENCE_S * 2)
            except asyncio.CancelledError:
                heard.append(str(ctx.cancel_reason))
                raise

        await self.start()
        id = (await self.client.submit("k", lane=self.lane)).execution_id
        while (await self.client.get(id)).get("lease") is None:
            await asyncio.sleep(0.02)
        await self.client.cancel(id, "stop", grace_ms=20_000)
        self.assertEqual((await self.client.result(id, PATIENCE_S)).outcome, "cancelled")
        self.assertEqual(heard, ["cancel_requested"])

    async def test_a_listening_coroutine_stops_by_itself(self) -> None:
        @self.worker.task("k")
        async def work(ctx: AsyncContext) -> None:
            await asyncio.wait_for(ctx.cancelled.wait(), PATIENCE_S)
            raise RuntimeError(ctx.cancel_reason)

        await self.start()
        id = (await self.client.submit("k", lane=self.lane)).execution_id
        while (await self.client.get(id)).get("lease") is None:
            await asyncio.sleep(0.02)
        self.worker.stop()
        self.worker.stop()
        await asyncio.wait_for(self.work, PATIENCE_S)
        self.assertEqual((await self.client.get(id))["attempts"][0]["state"], "interrupted")

    async def test_a_killed_server_is_waited_for(self) -> None:
        server = Server(durability="fsync")
        self.addCleanup(server.close)
        client = AsyncClient(server.url, retry=Retry(tries=100, max_s=0.5))
        self.worker = Worker(server.url, lanes=["l"], lease_ttl_ms=60_000)
        began, go = asyncio.Event(), asyncio.Event()

        @self.worker.task("k")
        async def work(ctx: AsyncContext) -> int:
            began.set()
            await go.wait()
            await ctx.frame("after", 1)
            return ctx.attempt_index

        await self.start()
        id = (await client.submit("k", lane="l")).execution_id
        await asyncio.wait_for(began.wait(), PATIENCE_S)
        server.kill()
        go.set()
        waiting = asyncio.ensure_future(client.result(id, PATIENCE_S))
        await asyncio.sleep(0.2)
        await asyncio.get_running_loop().run_in_executor(None, server.start)
        self.assertEqual((await waiting).value, 0)
        await client.close()

    async def test_the_other_groups_answer_too(self) -> None:
        budget = (await self.client.budgets.create({"n": {"hard": 5}}))["budget_id"]
        self.assertEqual((await self.client.budgets.usage(budget, {"n": 6})).outcome, "hard_breach")
        quota = (await self.client.quotas.create(concurrency=1))["quota_id"]
        self.assertEqual((await self.client.quotas.get(quota))["concurrency"], 1)
        await self.client.lanes.define(self.lane)
        self.assertEqual((await self.client.lanes.pause(self.lane))["state"], "paused")
        items = await self.client.submit_batch({"kind": "k", "lane": self.lane, "input": n} for n in range(3))
        self.assertEqual(len([one async for one in self.client.list(lane=self.lane)]), len(items))
        with self.assertRaises(NotFound):
            await self.client.get(mint())
        nobody = AsyncClient("http://127.0.0.1:9", retry=Retry(tries=2, initial_s=0.01))
        began = time.monotonic()
        with self.assertRaises(TransportError):
            await nobody.stats()
        self.assertLess(time.monotonic() - began, 5.0)


if __name__ == "__main__":
    unittest.main()
