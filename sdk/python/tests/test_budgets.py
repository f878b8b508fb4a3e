"""Reports of a running task to budgets and quotas."""

from __future__ import annotations

import logging
import unittest
from typing import Any, List

from server import PATIENCE_S, shared, until

from flowfabric import BudgetSpent, Client, Context, Worker, mint


class BudgetsTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=2)

    def run_task(self, input: Any = None, **fields: Any) -> Any:
        with self.worker.running():
            return self.client.run("k", input, lane=self.lane, wait_s=PATIENCE_S, retry={"max_attempts": 1}, **fields)

    def test_usage_is_reported_once_and_kept_in_the_ledger(self) -> None:
        budget = self.client.budgets.create({"tokens": {"hard": 100, "soft": 50}})["budget_id"]
        ids: List[str] = []

        @self.worker.task("k")
        def work(ctx: Context) -> Any:
            ids.append(ctx.execution_id)
            answers = [ctx.usage(budget, {"tokens": 30}, dedup_key="call-1") for _ in range(2)]
            answers.append(ctx.usage(budget, {"tokens": 30}))
            return [[answer.outcome, answer.dimension, answer.limit] for answer in answers]

        answers = self.run_task(budgets=[{"budget_id": budget}])
        self.assertEqual(answers, [["ok", None, None], ["already_applied", None, None], ["soft_breach", "tokens", 50]])
        self.assertEqual(self.client.usage(ids[0])["used"], {"tokens": 60})

    def test_a_hard_limit_parks_the_execution_until_there_is_room(self) -> None:
        budget = self.client.budgets.create({"tokens": {"hard": 10}}, on_hard="suspend")["budget_id"]
        runs: List[Any] = []

        @self.worker.task("k")
        def work(ctx: Context) -> str:
            runs.append(ctx.resume.cause if ctx.resume else None)
            try:
                ctx.usage(budget, {"tokens": 20})
            except BudgetSpent as spent:
                runs.append((spent.answer.outcome, spent.answer.action))
                raise
            return "paid"

        with self.worker.running():
            id = self.client.submit("k", lane=self.lane, budgets=[{"budget_id": budget}]).execution_id
            until(lambda: len(runs) == 2, "the limit is met")
            self.assertEqual(self.client.get(id)["outcome"], None)
            self.client.budgets.change(budget, {"tokens": {"hard": 100}})
            self.assertEqual(self.client.result(id, PATIENCE_S).value, "paid")
        self.assertEqual(runs, [None, ("hard_breach", "suspend"), "budget"])
        self.assertEqual(len(self.client.get(id)["attempts"]), 1)

    def test_amounts_are_reserved_settled_and_released_under_the_lease(self) -> None:
        budget = self.client.budgets.create({"tokens": {"hard": 100}})["budget_id"]

        @self.worker.task("k")
        def work(ctx: Context) -> Any:
            held = ctx.reserve(budget, {"tokens": 60}, dedup_key="call")
            again = ctx.reserve(budget, {"tokens": 60}, dedup_key="call")
            refused = ctx.reserve(budget, {"tokens": 60})
            settled = ctx.settle(budget, held.reservation_id or "", {"tokens": 25})
            other = ctx.reserve(budget, {"tokens": 5})
            ctx.release(budget, other.reservation_id or "")
            same = held.reservation_id == again.reservation_id
            return [held.outcome, same, refused.outcome, settled.outcome]

        self.assertEqual(self.run_task(), ["ok", True, "hard_breach", "ok"])
        dimension = self.client.budgets.get(budget)["dimensions"]["tokens"]
        self.assertEqual((dimension["used"], dimension["held"]), (25, 0))

    def test_a_provider_s_429_holds_the_key_for_everyone(self) -> None:
        quota = self.client.quotas.create(concurrency=5)["quota_id"]

        @self.worker.task("k")
        def work(ctx: Context) -> Any:
            return ctx.throttle(quota, "provider", 60_000)

        until_ms = self.run_task()
        self.assertIsNotNone(until_ms)
        self.assertEqual(self.client.quotas.get(quota, "provider")["keys"][0]["throttled_until"], until_ms)

    def test_what_an_attempt_really_weighed_is_put_right(self) -> None:
        quota = self.client.quotas.create(weighted={"limit": 100, "window_ms": 60_000})["quota_id"]

        @self.worker.task("k")
        def work(ctx: Context) -> Any:
            return ctx.weigh(quota, "tenant", 7)

        self.assertIs(self.run_task(quotas=[{"quota_id": quota, "key": "tenant", "weight": 30}]), True)
        parts = self.client.quotas.get(quota, "tenant")["keys"][0]["parts"]
        self.assertEqual([part["used"] for part in parts], [7])


if __name__ == "__main__":
    unittest.main()
