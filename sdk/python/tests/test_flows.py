"""Flows with passed values, and children that a handler spawns and waits for."""

from __future__ import annotations

import logging
import unittest
from typing import Any, List

from server import PATIENCE_S, shared, until

from flowfabric import Client, Context, InvalidRequest, TaskError, Worker, mint


class FlowsTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)
        self.worker = Worker(shared().url, lanes=[self.lane], slots=4)

    def test_results_are_passed_along_the_edges_of_a_flow(self) -> None:
        @self.worker.task("number")
        def number(n: int) -> int:
            return n

        @self.worker.task("raw")
        def raw() -> bytes:
            return b"\xff"

        @self.worker.task("broken")
        def broken() -> None:
            raise TaskError("no", "bad", retryable=False)

        @self.worker.task("sum")
        def add(ctx: Context) -> Any:
            failure = ctx.upstreams["why"].failure
            return [ctx.passed["left"] + ctx.passed["right"], ctx.passed["raw"].hex(), failure and failure.category,
                    ctx.task.key, ctx.task.flow_id is not None]

        with self.worker.running():
            flow = self.client.flows.submit(
                "sums",
                [{"key": "a", "kind": "number", "input": 20}, {"key": "b", "kind": "number", "input": 22},
                 {"key": "r", "kind": "raw"}, {"key": "x", "kind": "broken"}, {"key": "sum", "kind": "sum"}],
                [{"from": "a", "to": "sum", "pass_as": "left"}, {"from": "b", "to": "sum", "pass_as": "right"},
                 {"from": "r", "to": "sum", "pass_as": "raw"},
                 {"from": "x", "to": "sum", "on": "completion", "pass_as": "why"}],
                default_lane=self.lane,
            )
            ids = {member["key"]: member["execution_id"] for member in flow["members"]}
            self.assertEqual(self.client.result(ids["sum"], PATIENCE_S).value, [42, "ff", "bad", "sum", True])
            ended = self.client.flows.wait(flow["flow_id"], PATIENCE_S)
        self.assertEqual(ended["state"], "completed")
        graph = self.client.flows.graph(flow["flow_id"])
        self.assertEqual((len(graph["nodes"]), len(graph["edges"])), (5, 4))
        self.assertEqual(len(list(self.client.flows.members(flow["flow_id"], limit=3))), 3)
        self.assertIn(flow["flow_id"], [one["flow_id"] for one in self.client.flows.list(kind="sums")])
        again = self.client.flows.get(flow["flow_id"])
        self.assertEqual(again["counts"].get("completed", again["counts"].get("succeeded")), 4)

    def test_a_flow_grows_is_sealed_and_cancelled(self) -> None:
        flow = self.client.flows.submit(
            "growing", [{"key": "a", "kind": "k", "lane": self.lane}], policy="fail_flow", seal=False
        )
        id = flow["flow_id"]
        added = self.client.flows.add_members(
            id, [{"key": "b", "kind": "k", "lane": self.lane}], [{"from": "a", "to": "b"}]
        )
        self.assertEqual([member["key"] for member in added], ["b"])
        self.client.flows.add_members(id, [{"key": "c", "kind": "k", "lane": self.lane}])
        self.assertEqual(self.client.flows.add_edges(id, [{"from": "b", "to": "c"}]), 1)
        with self.assertRaises(InvalidRequest) as raised:
            self.client.flows.add_edges(id, [{"from": "c", "to": "a"}])
        self.assertEqual(raised.exception.code, "cycle_detected")
        self.client.flows.seal(id)
        cancelled = self.client.flows.cancel(id, "enough", wait=True)
        self.assertEqual(cancelled["state"], "cancelled")
        states = {one["state"] for one in self.client.list(flow_id=id)}
        self.assertEqual(states, {"cancelled"})

    def test_a_handler_spawns_children_and_goes_on_with_their_results(self) -> None:
        runs: List[str] = []

        @self.worker.task("plan")
        def plan(numbers: List[int], ctx: Context) -> Any:
            runs.append(ctx.resume.cause if ctx.resume else "first")
            ctx.spawn([{"kind": "square", "key": f"n{n}", "input": n} for n in numbers])
            ctx.spawn([{"kind": "square", "input": "not a number", "retry": {"max_attempts": 1}}])
            children = ctx.wait_children()
            return [[child.key, child.outcome, child.result] for child in children]

        @self.worker.task("square")
        def square(n: int) -> int:
            return n * n

        @self.worker.task("quick")
        def quick(ctx: Context) -> int:
            return len(ctx.wait_children()) + len(ctx.children())

        with self.worker.running():
            id = self.client.submit("plan", [1, 2, 3], lane=self.lane).execution_id
            value = self.client.result(id, PATIENCE_S).value
            self.assertEqual(value[:3], [["n1", "success", 1], ["n2", "success", 4], ["n3", "success", 9]])
            self.assertEqual(value[3][:2], [None, "failed"])
            self.assertEqual(self.client.run("quick", lane=self.lane, wait_s=PATIENCE_S), 0)
        self.assertEqual(runs[0], "first")
        self.assertTrue(set(runs[1:]) <= {"children"})
        self.assertEqual(len(self.client.children(id)), 4, "they were spawned once")

    def test_a_parent_that_waits_first_gets_its_children_with_the_claim(self) -> None:
        @self.worker.task("parent")
        def parent(ctx: Context) -> Any:
            if ctx.resume is None:
                ctx.spawn([{"kind": "child", "input": 5}])
            return [child.result for child in ctx.wait_children()]

        self.worker.task("child")(lambda n: n + 1)
        with self.worker.running():
            self.assertEqual(self.client.run("parent", lane=self.lane, wait_s=PATIENCE_S), [6])


if __name__ == "__main__":
    unittest.main()
