"""Durable steps: done once, found again by every later run, in blocking code and in asyncio."""

from __future__ import annotations

import asyncio
import logging
import unittest
from typing import Any, Dict, List

from server import PATIENCE_S, shared, until

from flowfabric import AsyncContext, Client, Context, Token, Worker, mint
from flowfabric.recorded import next_try, step_key

QUICKLY: Any = {"max_attempts": 3, "backoff": {"type": "fixed", "delay_ms": 0}, "jitter": "none"}


class StepsTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=4)
        self.effects: Dict[str, int] = {}

    def done(self, what: str) -> int:
        self.effects[what] = self.effects.get(what, 0) + 1
        return self.effects[what]

    def submit(self, kind: str, **fields: Any) -> str:
        return self.client.submit(kind, None, lane=self.lane, **fields).execution_id

    def steps(self, id: str) -> Dict[str, Any]:
        return {step["name"]: step for step in self.client.steps(id)}

    def signal(self, id: str, token: Token, name: str, key: str) -> None:
        found = [one for one in self.client.waitpoints.of(id) if one["key"] == key]
        self.client.waitpoints.signal(found[0]["waitpoint_id"], id, name, token)

    def test_every_step_runs_once_however_many_attempts_there_are(self) -> None:
        @self.worker.task("counting")
        def counting(ctx: Context) -> Any:
            once = ctx.step("once", lambda: self.done("once"))
            ctx.step("once", lambda: self.done("again"))
            for key in ("b", "a"):
                ctx.step("loop", lambda key=key: self.done(f"loop {key}"), key=key)
            large = ctx.step("large", lambda: "x" * 10_000)
            nothing = ctx.step("nothing", lambda: None)
            raw = ctx.step("bytes", lambda: b"\x00\xff")
            if ctx.attempt_index < 2:
                raise RuntimeError("broken")
            return [once, len(large), nothing, len(raw), ctx.step_key("once") == step_key(ctx.execution_id, "once")]

        with self.worker.running():
            id = self.submit("counting", retry=QUICKLY)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, [1, 10_000, None, 2, True])
        self.assertEqual(set(self.effects.values()), {1})
        self.assertEqual(set(self.steps(id)), {"once", "once#2", "loop:a", "loop:b", "large", "nothing", "bytes"})

    def test_steps_of_asyncio_run_at_the_same_time(self) -> None:
        @self.worker.task("gather")
        async def gather(ctx: AsyncContext) -> Any:
            async def part(name: str) -> str:
                await asyncio.sleep(0.01)
                self.done(name)
                return name

            both = await asyncio.gather(ctx.step("left", lambda: part("left")), ctx.step("right", lambda: part("right")))
            await ctx.sleep(0.01)
            if ctx.attempt_index == 0:
                raise RuntimeError("broken")
            return list(both)

        with self.worker.running():
            id = self.submit("gather", retry=QUICKLY)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, ["left", "right"])
        self.assertEqual(self.effects, {"left": 1, "right": 1})
        self.assertEqual(self.steps(id)["sleep"]["state"], "done")

    def test_a_rest_gives_the_slot_back_and_a_failed_step_is_tried_again(self) -> None:
        def flaky() -> int:
            if self.done("flaky") < 3:
                raise RuntimeError("503")
            return 3

        @self.worker.task("resting")
        def resting(ctx: Context) -> Any:
            self.done("run")
            ctx.sleep(1.2)
            retry: Any = {"max_attempts": 5, "backoff": {"type": "fixed", "delay_ms": 1}, "jitter": "none"}
            return ctx.step("flaky", flaky, retry=retry)

        with self.worker.running():
            id = self.submit("resting")
            until(lambda: self.client.get(id)["state"] == "delayed", "it rests")
            self.assertIsNone(self.client.get(id)["lease"])
            self.assertEqual(self.client.result(id, PATIENCE_S).value, 3)
        self.assertEqual((self.effects["run"], len(self.client.get(id)["attempts"])), (2, 1))
        self.assertEqual(self.steps(id)["flaky"]["tries"], 3)

    def test_an_approval_that_was_given_stays_given(self) -> None:
        tokens: Dict[str, List[Token]] = {}

        @self.worker.task("release")
        def release(ctx: Context) -> Any:
            signed = ctx.approval("sign-off", ["ann", "bob"], deliver=lambda who, token: tokens.setdefault(who, []).append(token))
            if ctx.attempt_index == 0:
                raise RuntimeError("broken behind the approval")
            paid = ctx.wait_for_signal_as("payment", "paid", deliver=lambda token: tokens.setdefault("bank", []).append(token))
            assert paid is not None
            return [[one.approver for one in signed], paid.name]

        with self.worker.running():
            id = self.submit("release", retry=QUICKLY)
            for key, people, name in (("sign-off", ("ann", "bob"), "yes"), ("payment", ("bank",), "paid")):
                until(
                    lambda key=key: any(one["key"] == key for one in self.client.get(id)["waitpoints"])
                    and self.client.get(id)["state"] == "suspended",
                    "it waits",
                )
                for who in people:
                    self.signal(id, tokens[who][-1], name, key)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, [["ann", "bob"], "paid"])
        self.assertEqual({who: len(all) for who, all in tokens.items()}, {"ann": 1, "bob": 1, "bank": 1})
        self.assertEqual(len(self.client.get(id)["attempts"]), 2)

    def test_a_handler_that_passes_over_its_rest_fails_clearly(self) -> None:
        @self.worker.task("careless")
        def careless(ctx: Context) -> Any:
            try:
                ctx.sleep(3_600)
            except BaseException:
                pass
            return "too early"

        with self.worker.running():
            id = self.submit("careless", retry=QUICKLY)
            failure = self.client.result(id, PATIENCE_S).failure
        assert failure is not None
        self.assertEqual((failure.category, len(self.client.get(id)["attempts"])), ("set_aside_swallowed", 1))
        self.assertIn("sleep", failure.reason)

    def test_a_replay_forgets_steps_and_a_fork_copies_them(self) -> None:
        @self.worker.task("forked")
        def forked(ctx: Context) -> Any:
            return [ctx.step(name, lambda name=name: self.done(name)) for name in ("a", "b")]

        def ends(id: str, attempts: int) -> None:
            until(lambda: len(self.client.get(id)["attempts"]) == attempts and self.client.get(id)["outcome"], "it has ended")

        with self.worker.running():
            id = self.submit("forked")
            self.assertEqual(self.client.result(id, PATIENCE_S).value, [1, 1])
            fork = self.client.fork(id, from_step="b")
            self.assertEqual(self.client.result(fork, PATIENCE_S).value, [1, 2])
            self.assertEqual(self.client.get(fork)["forked_from"], id)
            self.client.replay(id, from_step="b")
            ends(id, 2)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, [1, 3])
            self.client.replay(id, from_start=True)
            ends(id, 3)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, [2, 4])


class PolicyTest(unittest.TestCase):
    def test_a_try_follows_as_the_policy_says(self) -> None:
        retry: Any = {
            "max_attempts": 4, "jitter": "none", "never_on": ["content_policy"],
            "backoff": {"type": "exponential", "initial_ms": 100, "factor": 3, "max_ms": 500},
        }
        delays = [next_try(retry, tries, "provider", None, None) for tries in range(1, 5)]
        self.assertEqual(delays, [100, 300, 500, None])
        self.assertIsNone(next_try(None, 1, "provider", None, None))
        self.assertIsNone(next_try(retry, 1, "content_policy", None, None))
        self.assertIsNone(next_try(retry, 1, "provider", False, None))
        self.assertEqual(next_try(retry, 1, "provider", None, 7), 7)


if __name__ == "__main__":
    unittest.main()
