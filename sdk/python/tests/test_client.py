"""The calls of submitters and operators, on a real server."""

from __future__ import annotations

import time
import unittest

from server import PATIENCE_S, shared, until

from flowfabric import (
    Client,
    Conflict,
    ExecutionFailed,
    InvalidRequest,
    Json,
    NotEnded,
    NotFound,
    Retry,
    TooLarge,
    TransportError,
    Unavailable,
    Worker,
    mint,
)


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.lane = f"lane-{mint()[-8:]}"
        self.client = Client(shared().url)
        self.addCleanup(self.client.close)

    def test_an_execution_keeps_every_field_it_was_submitted_with(self) -> None:
        budget = self.client.budgets.create({"tokens": {"hard": 1000}})["budget_id"]
        quota = self.client.quotas.create(concurrency=5)["quota_id"]
        now = int(time.time() * 1000)
        submitted = self.client.submit(
            "report", {"n": 2**60}, lane=self.lane, tags={"team": "ada"}, priority=7, delay_ms=60_000,
            deadline_ms=3_600_000, start_within_ms=1_800_000, idempotency_key=mint(), idempotency_ttl_ms=60_000,
            retry={"max_attempts": 2, "backoff": {"type": "fixed", "delay_ms": 5}, "jitter": "none", "never_on": ["bad"]},
            attempt_timeout_ms=10_000, max_reclaims=1, max_replays=1, requires=["gpu"], prefers=["ssd"],
            fairness_key="f", budgets=[{"budget_id": budget, "estimate": {"tokens": 1}}],
            quotas=[{"quota_id": quota, "key": "k", "weight": 1}], fallbacks=[{"model": "small"}],
            retention_ms=60_000, stream={"max_frames": 10},
            trace_parent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        self.assertFalse(submitted.duplicate)
        shown = self.client.get(submitted.execution_id)
        self.assertEqual(
            (shown["kind"], shown["lane"], shown["input"], shown["tags"], shown["priority"], shown["requires"]),
            ("report", self.lane, {"n": 2**60}, {"team": "ada"}, 7, ["gpu"]),
        )
        self.assertGreater(shown["delay_until"] or 0, now)
        self.assertEqual(shown["state"], "delayed")

    def test_a_submission_is_accepted_once(self) -> None:
        key = mint()
        first = self.client.submit("k", 1, lane=self.lane, idempotency_key=key)
        again = self.client.submit("k", 1, lane=self.lane, idempotency_key=key)
        self.assertEqual((again.execution_id, again.duplicate), (first.execution_id, True))
        with self.assertRaises(Conflict) as raised:
            self.client.submit("k", 2, lane=self.lane, idempotency_key=key)
        self.assertEqual((raised.exception.code, raised.exception.status), ("idempotency_conflict", 409))
        own = mint()
        self.assertEqual(self.client.submit("k", lane=self.lane, execution_id=own).execution_id, own)
        self.assertTrue(self.client.submit("k", lane=self.lane, execution_id=own).duplicate)

    def test_a_batch_is_answered_item_by_item(self) -> None:
        items = self.client.submit_batch(
            [{"kind": "k", "lane": self.lane, "input": b"\x00"}, {"kind": "", "lane": self.lane},
             {"kind": "k", "lane": self.lane, "input": {"b": 1}}]
        )
        self.assertEqual([item.submitted is not None for item in items], [True, False, True])
        self.assertEqual(items[1].error and items[1].error.code, "invalid_argument")

    def test_a_list_goes_on_over_pages(self) -> None:
        self.client.submit_batch({"kind": "k", "lane": self.lane, "tags": {"n": str(n % 2)}} for n in range(25))
        pages = self.client.list(lane=self.lane, limit=1000)
        self.assertEqual(len({one["execution_id"] for one in pages}), 25)
        self.assertEqual(len(list(self.client.list(lane=self.lane, limit=10))), 10)
        self.assertEqual(len(list(self.client.list(lane=self.lane, tag="n:1"))), 12)
        counts = self.client.cancel_where(lane=self.lane, reason="enough")
        self.assertEqual((counts["matched"], counts["cancelled"]), (25, 25))
        self.assertEqual({one["state"] for one in self.client.list(lane=self.lane)}, {"cancelled"})

    def test_every_page_is_read_when_there_are_several(self) -> None:
        from flowfabric.blocking.pages import pages

        self.client.submit_batch({"kind": "k", "lane": self.lane} for _ in range(7))
        small = pages(self.client._transport, "/v1/executions", {"lane": self.lane}, None)
        # The server's page size is 100; a smaller one makes the list span several pages.
        self.assertEqual(len(list(small)), 7)
        first = self.client._transport.json("GET", "/v1/executions", query={"lane": self.lane, "limit": 3})
        rest = self.client._transport.json(
            "GET", "/v1/executions", query={"lane": self.lane, "cursor": first["next_cursor"]}
        )
        self.assertEqual(len(first["items"]) + len(rest["items"]), 7)

    def test_operators_hold_change_release_cancel_and_replay(self) -> None:
        id = self.client.submit("k", lane=self.lane).execution_id
        self.assertEqual(self.client.hold(id, "wait")["outcome"], "held")
        reasons = [reason["reason"] for reason in self.client.explain(id)["reasons"]]
        self.assertTrue(reasons, "it says why it does not run")
        self.client.change(id, priority=9, tags={"a": "b"})
        self.assertEqual(self.client.get(id)["priority"], 9)
        self.assertEqual(self.client.release(id)["outcome"], "released")
        self.assertEqual(self.client.cancel(id, "not needed")["outcome"], "cancelled")
        self.assertEqual(self.client.cancel(id)["terminal_outcome"], "cancelled")
        result = self.client.result(id)
        self.assertEqual(result.outcome, "cancelled")
        with self.assertRaises(ExecutionFailed):
            _ = result.value
        self.assertEqual(self.client.replay(id)["replay_count"], 1)
        actions = [action["action"] for action in self.client.history(id)["operator_actions"]]
        self.assertIn("replay", " ".join(actions))
        self.client.cancel(id)
        self.client.delete(id)
        with self.assertRaises(NotFound) as raised:
            self.client.get(id)
        self.assertEqual(raised.exception.code, "execution_not_found")

    def test_a_result_is_waited_for(self) -> None:
        id = self.client.submit("k", lane=self.lane).execution_id
        began = time.monotonic()
        with self.assertRaises(NotEnded) as raised:
            self.client.result(id, wait_s=0.3)
        self.assertGreater(time.monotonic() - began, 0.25)
        self.assertIn(raised.exception.state, ("waiting", "eligible", "blocked", "runnable"))

    def test_a_refusal_says_what_is_wrong(self) -> None:
        with self.assertRaises(InvalidRequest) as raised:
            self.client.submit("k", lane=self.lane, priority=10_000)
        error = raised.exception
        self.assertEqual((error.code, error.status, error.retryable), ("invalid_argument", 400, False))
        self.assertIn("priority", error.fields)
        self.assertTrue(error.request_id)
        with self.assertRaises(TooLarge):
            self.client.submit("k", b"x" * (1024 * 1024 + 1), lane=self.lane)
        self.client.lanes.define(self.lane, max_depth=1)
        impatient = Client(shared().url, retry=Retry(tries=1))
        self.addCleanup(impatient.close)

        def full() -> object:
            try:
                impatient.submit("k", lane=self.lane)
            except Unavailable as error:
                return (error.code, error.retryable)
            return None

        # The depth that limits a lane is up to a second old.
        self.assertEqual(until(full, "the lane is full"), ("lane_full", True))

    def test_a_server_that_is_not_there_is_a_transport_error(self) -> None:
        client = Client("http://127.0.0.1:9", retry=Retry(tries=2, initial_s=0.01))
        with self.assertRaises(TransportError) as raised:
            client.stats()
        self.assertFalse(raised.exception.sent)

    def test_lanes_are_defined_paused_and_listed(self) -> None:
        self.client.lanes.define(self.lane, max_active=3)
        self.assertEqual(self.client.lanes.pause(self.lane)["state"], "paused")
        self.assertEqual(self.client.lanes.get(self.lane)["max_active"], 3)
        self.assertEqual(self.client.lanes.resume(self.lane)["state"], "active")
        self.assertIn(self.lane, [lane["lane"] for lane in self.client.lanes.list()])

    def test_quotas_are_made_changed_throttled_and_deleted(self) -> None:
        quota = self.client.quotas.create(rate={"limit": 10, "window_ms": 1000}, concurrency=2)
        id = quota["quota_id"]
        self.assertEqual(self.client.quotas.change(id, concurrency=4)["concurrency"], 4)
        later = int(time.time() * 1000) + 60_000
        self.assertEqual(self.client.quotas.throttle(id, "tenant", later), later)
        self.assertEqual(self.client.quotas.get(id, "tenant")["keys"][0]["throttled_until"], later)
        self.assertIn(id, [one["quota_id"] for one in self.client.quotas.list()])
        self.client.quotas.delete(id)
        with self.assertRaises(NotFound):
            self.client.quotas.get(id)

    def test_schedules_are_made_fired_paused_backfilled_and_deleted(self) -> None:
        name, schedules = f"nightly-{self.lane}", self.client.schedules
        action = {"execution": {"kind": "report", "lane": self.lane}}
        made = schedules.put(name, [{"cron": "0 3 * * *"}], action, time_zone="Europe/Berlin", overlap="allow", version=0)
        self.assertEqual((made["version"], made["time_zone"], made["ended"]), (1, "Europe/Berlin", False))
        with self.assertRaises(Conflict):
            schedules.put(name, [{"cron": "0 4 * * *"}], action, version=7)
        self.assertEqual([time["will_fire"] for time in schedules.next(name, count=3)], [True, True, True])
        request = mint()
        fired = schedules.trigger(name, request_id=request)
        self.assertEqual(schedules.trigger(name, request_id=request)["execution_id"], fired["execution_id"])
        self.assertEqual(self.client.get(fired["execution_id"])["schedule"], name)
        self.assertEqual([one["cause"] for one in schedules.firings(name)], ["trigger"])
        paused = schedules.pause(name, reason="holidays")["paused"]
        self.assertEqual(paused and paused["reason"], "holidays")
        self.assertIsNone(schedules.resume(name)["paused"])
        now = int(time.time() * 1000)
        backfill = schedules.backfill(name, now - 3 * 86_400_000, now)["backfill"]
        self.assertEqual(backfill and backfill["total"], 3)
        self.assertIsNotNone(schedules.stop_backfill(name)["backfill"])
        self.assertIn(name, [one["name"] for one in schedules.list()])
        schedules.delete(name)
        with self.assertRaises(NotFound):
            schedules.get(name)

    def test_budgets_are_made_spent_reserved_settled_and_raised(self) -> None:
        id = self.client.budgets.create({"tokens": {"hard": 100, "soft": 50}})["budget_id"]
        budgets = self.client.budgets
        self.assertEqual(budgets.usage(id, {"tokens": 40}, dedup_key="a").outcome, "ok")
        self.assertEqual(budgets.usage(id, {"tokens": 40}, dedup_key="a").outcome, "already_applied")
        self.assertEqual(budgets.usage(id, {"tokens": 20}).outcome, "soft_breach")
        held = budgets.reserve(id, {"tokens": 30})
        self.assertTrue(held.ok and held.reservation_id)
        refused = budgets.usage(id, {"tokens": 30})
        self.assertEqual((refused.outcome, refused.dimension, refused.limit), ("hard_breach", "tokens", 100))
        self.assertTrue(budgets.settle(id, held.reservation_id or "", {"tokens": 10}).ok)
        other = budgets.reserve(id, {"tokens": 5})
        budgets.release(id, other.reservation_id or "")
        self.assertEqual(budgets.get(id)["dimensions"]["tokens"]["used"], 70)
        self.assertEqual(budgets.change(id, {"tokens": {"hard": 200}})["dimensions"]["tokens"]["hard"], 200)
        self.assertIn(id, [one["budget_id"] for one in budgets.list()])

    def test_events_go_on_from_a_cursor(self) -> None:
        id = self.client.submit("k", lane=self.lane).execution_id
        self.client.cancel(id)
        first = list(self.client.events("start", lane=self.lane, types=["execution.*"], limit=2))
        self.assertEqual([event.type for event in first], ["execution.submitted", "execution.cancelled"])
        rest = list(self.client.events(first[0].cursor, lane=self.lane, types=["execution.cancelled"], limit=1))
        self.assertEqual(rest[0].execution_id, id)
        later = self.client.submit("k", lane=self.lane).execution_id
        for cursor in (first[1].cursor, rest[0].cursor):
            after = list(self.client.events(cursor, lane=self.lane, types=["execution.*"], limit=1))
            self.assertEqual((after[0].type, after[0].execution_id), ("execution.submitted", later))

    def test_a_registered_worker_is_shown(self) -> None:
        worker = Worker(shared().url, lanes=[self.lane], capabilities=["gpu"], slots=3)
        worker.task("k")(lambda: "done")
        with worker.running():
            shown = self.client.workers.get(worker.instance)
            self.assertEqual((shown["capabilities"], shown["slots"]), (["gpu"], 3))
            self.assertIn(worker.instance, [one["instance"] for one in self.client.workers.list()])
            self.assertEqual(self.client.run("k", lane=self.lane, requires=["gpu"], wait_s=PATIENCE_S), "done")
        until(lambda: worker.instance not in [one["instance"] for one in self.client.workers.list()], "it left")

    def test_null_is_not_nothing(self) -> None:
        worker = Worker(shared().url, lanes=[self.lane], slots=2)
        seen = []

        @worker.task("k")
        def echo(value) -> object:  # type: ignore[no-untyped-def]
            seen.append(value)
            return Json(None)

        with worker.running():
            id = self.client.submit("k", Json(None), lane=self.lane).execution_id
            self.assertIsNone(self.client.result(id, PATIENCE_S).value)
        self.assertEqual(self.client.get(id)["result_encoding"], "json")
        self.assertEqual(seen, [None])


if __name__ == "__main__":
    unittest.main()
