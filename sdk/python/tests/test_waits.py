"""Suspend, signal, resume: with tokens, approvers, early signals and timeouts."""

from __future__ import annotations

import logging
import threading
import unittest
from typing import Any, Dict, List

from server import PATIENCE_S, shared, until

from flowfabric import Client, Context, NotFound, Opened, Unauthenticated, Worker, all_of, count, mint, signal


class WaitsTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=4)

    def submit(self, kind: str, input: Any = None, **fields: Any) -> str:
        return self.client.submit(kind, input, lane=self.lane, **fields).execution_id

    def suspended(self, id: str) -> None:
        until(lambda: self.client.get(id)["state"] == "suspended", "it is suspended")

    def test_an_execution_waits_for_its_signal_without_a_worker_and_goes_on(self) -> None:
        opened: Dict[str, Opened] = {}
        resumes: List[Any] = []

        @self.worker.task("publish")
        def publish(ctx: Context) -> Any:
            if ctx.resume is None:
                opened["it"] = ctx.create_pending_waitpoint("review", expires_in_ms=60_000)
            else:
                resumes.append((ctx.resume.cause, ctx.resume.continuation, ctx.attempt_index))
            got = ctx.wait_for_signal("approved", reason="waiting_for_approval", continuation={"draft": 3})
            assert got is not None
            return {"said": got.payload, "key": got.waitpoint_key}

        with self.worker.running():
            id = self.submit("publish")
            self.suspended(id)
            inbox = [one for one in self.client.waitpoints.list() if one["execution_id"] == id]
            self.assertEqual([(one["key"], one["reason"]) for one in inbox], [("review", "waiting_for_approval")])
            waitpoint = opened["it"]
            with self.assertRaises(Unauthenticated) as raised:
                self.client.waitpoints.signal(waitpoint.waitpoint_id, id, "approved", "wp1.forged.x.y")
            self.assertEqual(raised.exception.code, "invalid_token")
            wrong = self.client.waitpoints.signal(waitpoint.waitpoint_id, id, "noted", waitpoint.token)
            self.assertEqual(wrong.outcome, "accepted")
            key = mint()
            for expected in ("triggered_resume", "duplicate"):
                answer = self.client.waitpoints.signal(
                    waitpoint.waitpoint_id, id, "approved", waitpoint.token, {"by": "ada"}, source="test",
                    idempotency_key=key,
                )
                self.assertEqual(answer.outcome, expected)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, {"said": {"by": "ada"}, "key": "review"})
            with self.assertRaises(NotFound) as closed:
                self.client.waitpoints.signal(waitpoint.waitpoint_id, id, "approved", waitpoint.token)
            self.assertEqual(closed.exception.code, "waitpoint_not_open")
        self.assertEqual(resumes, [("signal", {"draft": 3}, 0)])
        history = self.client.history(id)
        self.assertEqual((len(history["attempts"]), len(history["past_suspensions"])), (1, 1))
        self.assertEqual(self.client.waitpoints.get(waitpoint.waitpoint_id)["state"], "closed")

    def test_signals_that_come_early_are_enough(self) -> None:
        @self.worker.task("early")
        def early(ctx: Context) -> Any:
            opened = ctx.create_pending_waitpoint("call")
            with Client(shared().url) as other:
                other.waitpoints.signal(opened.waitpoint_id, ctx.execution_id, "go", opened.token, b"\x01\x02")
            spare = ctx.create_pending_waitpoint("spare")
            ctx.close_waitpoint(spare.waitpoint_id)
            signals = ctx.suspend(waitpoints=[opened], condition=signal("go"))
            return signals[0].payload

        with self.worker.running():
            id = self.submit("early")
            self.assertEqual(self.client.result(id, PATIENCE_S).value, b"\x01\x02")
        self.assertEqual(self.client.history(id)["past_suspensions"], [])

    def test_two_distinct_approvers_are_counted(self) -> None:
        tokens: Dict[Any, Any] = {}
        waitpoint: List[str] = []

        @self.worker.task("vote")
        def vote(ctx: Context) -> Any:
            if ctx.resume is None:
                opened = ctx.create_pending_waitpoint("board", approvers=["ada", "bob", "eve"])
                tokens.update(opened.tokens)
                waitpoint.append(opened.waitpoint_id)
            signals = ctx.wait_for_signals(
                condition=all_of(count(2, "approvers", of="yes")), reason="waiting_for_approval"
            )
            return sorted(str(one.approver) for one in signals if one.name == "yes")

        with self.worker.running():
            id = self.submit("vote")
            self.suspended(id)
            self.assertEqual(set(tokens), {"ada", "bob", "eve"})

            def send(who: str) -> str:
                return self.client.waitpoints.signal(waitpoint[0], id, "yes", tokens[who]).outcome

            self.assertEqual([send("ada"), send("ada")], ["accepted", "accepted"])
            tokens["eve"] = self.client.waitpoints.reissue(waitpoint[0], "eve")
            self.assertEqual(send("eve"), "triggered_resume")
            self.assertEqual(set(self.client.result(id, PATIENCE_S).value), {"ada", "eve"})

    def test_a_wait_is_ended_by_nothing_but_its_own_end(self) -> None:
        budget = self.client.budgets.create({"tokens": {"hard": 10}}, on_hard="suspend")["budget_id"]

        def ask(ctx: Context) -> Any:
            return [one.name for one in ctx.wait_for_signals("yes", key="sign-off", reason="waiting_for_approval")]

        @self.worker.task("spends")
        def spends(ctx: Context) -> Any:
            ctx.usage(budget, {"tokens": 11}, dedup_key="call")
            return ask(ctx)

        @self.worker.task("spawns")
        def spawns(ctx: Context) -> Any:
            ctx.spawn([{"kind": "child"}])
            ctx.wait_children()
            return ask(ctx)

        @self.worker.task("child")
        def child() -> None:
            return None

        @self.worker.task("waits")
        def waits(ctx: Context) -> Any:
            if ctx.resume is None or ctx.resume_of("first") is not None:
                ctx.wait_for_signals(key="first", step="first")
            return ask(ctx)

        def reason(id: str) -> Any:
            return (self.client.get(id).get("suspension") or {}).get("reason")

        with self.worker.running():
            spending = self.client.submit("spends", lane=self.lane, budgets=[{"budget_id": budget}]).execution_id
            until(lambda: self.client.get(spending)["blocking_reason"] == "waiting_for_budget", "it is parked")
            self.client.budgets.change(budget, {"tokens": {"hard": 100}})
            twice = self.submit("waits")
            self.suspended(twice)
            self.client.resume(twice)
            for id in (spending, self.submit("spawns"), twice):
                until(lambda id=id: reason(id) == "waiting_for_approval", "it waits for a person")
                self.client.resume(id)
                self.assertEqual(self.client.result(id, PATIENCE_S).value, [])

    def test_a_wait_may_end_by_time_or_by_an_operator(self) -> None:
        @self.worker.task("brief")
        def brief(ctx: Context) -> Any:
            signals = ctx.wait_for_signals(key="never", timeout_ms=100, timeout_behavior="auto_resume")
            return [ctx.resume and ctx.resume.cause, [one.name for one in signals]]

        @self.worker.task("patient")
        def patient(ctx: Context) -> Any:
            got = ctx.wait_for_signal(key="never")
            return [ctx.resume and ctx.resume.cause, got]

        with self.worker.running():
            cause, names = self.client.result(self.submit("brief"), PATIENCE_S).value
            self.assertEqual((cause, len(names)), ("timeout", 1))
            id = self.submit("patient")
            self.suspended(id)
            self.client.resume(id, "enough")
            self.assertEqual(self.client.result(id, PATIENCE_S).value, ["operator", None])
            id = self.submit("patient")
            self.suspended(id)
            self.client.fail_suspension(id, "no answer will come")
            self.assertEqual(self.client.result(id, PATIENCE_S).outcome, "failed")

    def test_a_handler_that_catches_everything_still_waits(self) -> None:
        runs: List[str] = []
        ran = threading.Event()

        @self.worker.task("stubborn")
        def stubborn(ctx: Context) -> str:
            runs.append("ran")
            try:
                ctx.wait_for_signal(key="door")
            except BaseException:
                ran.set()
                return "this is not sent"
            return "woken"

        with self.worker.running():
            id = self.submit("stubborn")
            self.assertTrue(ran.wait(PATIENCE_S))
            self.suspended(id)
            self.client.resume(id)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, "woken")
        self.assertEqual(len(runs), 2)


if __name__ == "__main__":
    unittest.main()
