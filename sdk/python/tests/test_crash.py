"""Killed servers, cut networks, lost responses: work ends exactly once."""

from __future__ import annotations

import logging
import threading
import time
import unittest
from typing import Any, List

from server import PATIENCE_S, Proxy, Server, shared, until

from flowfabric import Client, Context, Retry, Worker, mint


class CrashTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("flowfabric").setLevel(logging.CRITICAL)

    def test_a_worker_survives_a_killed_server_and_its_work_ends_once(self) -> None:
        server = Server(durability="fsync")
        self.addCleanup(server.close)
        client = Client(server.url)
        self.addCleanup(client.close)
        # Long enough for the lease to outlive the restart on a busy machine.
        worker = Worker(server.url, lanes=["l"], slots=4, lease_ttl_ms=60_000)
        began, go = threading.Event(), threading.Event()
        runs: List[str] = []

        @worker.task("held")
        def held(ctx: Context) -> str:
            runs.append(ctx.execution_id)
            began.set()
            go.wait(PATIENCE_S)
            ctx.progress(90, "nearly")
            return "ended"

        @worker.task("quick")
        def quick(n: int, ctx: Context) -> int:
            runs.append(ctx.execution_id)
            return n + 1

        with worker.running():
            first = client.submit("held", lane="l").execution_id
            self.assertTrue(began.wait(PATIENCE_S))
            server.kill()
            go.set()
            time.sleep(0.3)
            server.start()
            self.assertEqual(client.result(first, PATIENCE_S).value, "ended")
            # The claim loop and the registration work again, too.
            ids = [client.submit("quick", n, lane="l").execution_id for n in range(5)]
            self.assertEqual([client.result(id, PATIENCE_S).value for id in ids], [1, 2, 3, 4, 5])
        self.assertEqual(len(runs), len(set(runs)), "nothing ran twice")
        self.assertEqual(len(client.get(first)["attempts"]), 1)

    def test_a_worker_that_is_cut_off_stops_before_another_one_begins(self) -> None:
        lane = f"lane-{mint()[-8:]}"
        proxy = Proxy(shared().port)
        self.addCleanup(proxy.close)
        client = Client(shared().url)
        self.addCleanup(client.close)
        away = Worker(proxy.url, lanes=[lane], lease_ttl_ms=2_000, drain_grace_s=0.1, stop_grace_s=0.1)
        here = Worker(shared().url, lanes=[lane], lease_ttl_ms=2_000)
        began, times = threading.Event(), []

        @away.task("k")
        def lost(ctx: Context) -> str:
            began.set()
            ctx.cancelled.wait(PATIENCE_S)
            times.append(("stopped", ctx.cancel_reason, time.monotonic()))
            return "from the zombie"

        @here.task("k")
        def found(ctx: Context) -> str:
            times.append(("began", ctx.task.attempt_type, time.monotonic()))
            return "from the other"

        with away.running():
            id = client.submit("k", lane=lane).execution_id
            self.assertTrue(began.wait(PATIENCE_S))
            with here.running():
                proxy.cut()
                self.assertEqual(client.result(id, PATIENCE_S).value, "from the other")
            proxy.close()
        by_name = {name: (why, at) for name, why, at in times}
        self.assertEqual((by_name["stopped"][0], by_name["began"][0]), ("lease_lost", "reclaim"))
        self.assertLess(by_name["stopped"][1], by_name["began"][1])

    def test_answers_that_are_lost_are_asked_for_again(self) -> None:
        lane = f"lane-{mint()[-8:]}"
        proxy = Proxy(shared().port)
        self.addCleanup(proxy.close)
        client = Client(proxy.url, retry=Retry(tries=1000, max_s=0.2))
        self.addCleanup(client.close)
        worker = Worker(proxy.url, lanes=[lane], slots=4, lease_ttl_ms=10_000)
        runs: List[str] = []

        @worker.task("k")
        def work(n: int, ctx: Context) -> int:
            runs.append(ctx.execution_id)
            ctx.frame("n", n)
            return n

        stop = threading.Event()

        def disturb() -> None:
            while not stop.wait(0.08):
                proxy.drop()

        disturbing = threading.Thread(target=disturb, daemon=True)
        with worker.running():
            disturbing.start()
            try:
                ids = [client.submit("k", n, lane=lane).execution_id for n in range(20)]
                values = [client.result(id, PATIENCE_S).value for id in ids]
            finally:
                stop.set()
                disturbing.join()
        self.assertEqual(values, list(range(20)))
        for id in ids:
            attempts = client.get(id)["attempts"]
            self.assertEqual(attempts[-1]["state"], "succeeded")
            self.assertEqual(attempts[-1]["frames"], 1, "a frame whose answer was lost is there once")

    def test_a_forgotten_registration_is_made_again(self) -> None:
        lane = f"lane-{mint()[-8:]}"
        client = Client(shared().url)
        self.addCleanup(client.close)
        worker = Worker(shared().url, lanes=[lane])
        worker.task("k")(lambda: "done")
        with worker.running():
            client._transport.json("DELETE", f"/v1/workers/{worker.instance}", {"force": True})
            self.assertEqual(client.run("k", lane=lane, wait_s=PATIENCE_S), "done")
            until(lambda: worker.instance in [one["instance"] for one in client.workers.list()], "it is back")

    def test_a_worker_may_start_before_its_server(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        server.kill()
        worker = Worker(server.url, lanes=["l"])
        worker.task("k")(lambda: "done")
        starting = threading.Timer(0.3, server.start)
        starting.start()
        with worker.running(), Client(server.url) as client:
            starting.join()
            self.assertEqual(client.run("k", lane="l", wait_s=PATIENCE_S), "done")


if __name__ == "__main__":
    unittest.main()
