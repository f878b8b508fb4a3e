"""A program of steps, rests and waits is killed with SIGKILL at every place, or its server is: the result is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path
from typing import Any, Dict, List

from server import PATIENCE_S, SDK, Server, until

from flowfabric import Client

PROGRAM = '''
import os, signal, sys, time
from pathlib import Path
from flowfabric import Context, Worker

here = Path(sys.argv[1])
worker = Worker(sys.argv[2], lanes=["l"], lease_ttl_ms=1_500)

def at(place):
    """The place where it dies, or where it waits until the server was killed and started again."""
    die, hold = here / f"die {place}", here / f"hold {place}"
    if die.exists():
        die.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if hold.exists():
        hold.rename(here / "held")
        while not (here / "go").exists():
            time.sleep(0.01)

def effect(name):
    with (here / "effects").open("a") as log:
        log.write(name + "\\n")
    at(f"in {name}")
    return name

def mailed(who, token):
    (here / f"{who}.token").write_text(token)
    at("in deliver")

@worker.task("child")
def child(ctx: Context):
    return 1

@worker.task("all")
def all_of_it(ctx: Context):
    at("top")
    a = ctx.step("a", lambda: effect("a"))
    at("after a")
    ctx.sleep(1.1)
    at("after sleep")
    ctx.spawn_as("fan out", [{"kind": "child", "lane": "l"}])
    at("after spawn")
    children = len(ctx.wait_children_as("join"))
    at("after join")
    paid = ctx.wait_for_signal_as("payment", "paid", deliver=lambda token: mailed("bank", token))
    at("after payment")
    signed = ctx.approval("sign-off", ["ann", "bob"], deliver=mailed)
    at("after sign-off")
    b = ctx.step("b", lambda: effect("b"))
    at("after b")
    return [a, children, paid.name, sorted(one.approver for one in signed), b]

worker.run()
'''

PLACES = [
    "top", "in a", "after a", "after sleep", "after spawn", "after join", "in deliver", "after payment", "after sign-off",
    "in b", "after b",
]
EXPECTED = ["a", 1, "paid", ["ann", "bob"], "b"]


def sampled() -> List[str]:
    """All places in the wide tier, else a part of them that changes with the day."""
    cases = [f"{what} {place}" for what in ("die", "hold") for place in PLACES]
    if os.environ.get("FF_TIER", "quick") != "quick":
        return cases
    day = int(os.environ.get("FF_SAMPLE") or time.time() // 86_400)
    return [case for case in cases if (zlib.crc32(case.encode()) + day) % 6 == 0] or cases[:1]


class StepsCrashTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server(durability="fsync")
        self.addCleanup(self.server.close)
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)

    def start(self, here: Path) -> "subprocess.Popen[bytes]":
        program = here / "program.py"
        program.write_text(PROGRAM)
        environment = {**os.environ, "PYTHONPATH": str(SDK / "src")}
        command = [sys.executable, str(program), str(here), self.server.url]
        with open(here / "log", "ab") as log:
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def answer(self, id: str, here: Path, given: Dict[str, str]) -> None:
        """Answers what the execution waits for, with the tokens handed out last."""
        for waitpoint in self.client.waitpoints.of(id):
            if waitpoint["state"] == "closed":
                continue
            people, name = (["bank"], "paid") if waitpoint["key"] == "payment" else (["ann", "bob"], "yes")
            for who in people:
                file = here / f"{who}.token"
                token = file.read_text() if file.exists() else None
                if token is None or given.get(who) == token:
                    continue
                given[who] = token
                try:
                    self.client.waitpoints.signal(waitpoint["waitpoint_id"], id, name, token)
                except Exception:
                    # Handed out, and made anew since: the next one counts.
                    pass

    def run_case(self, case: str) -> None:
        with tempfile.TemporaryDirectory() as directory:
            here, given = Path(directory), dict[str, str]()
            (here / case).touch()
            id = self.client.submit("all", None, lane="l").execution_id
            worker = self.start(here)
            until_s = time.monotonic() + 4 * PATIENCE_S
            while True:
                self.assertLess(time.monotonic(), until_s, f"{case}: {(here / 'log').read_text()} {self.client.get(id)}")
                if (here / "held").exists() and not (here / "go").exists():
                    self.server.kill()
                    self.server.start()
                    (here / "go").touch()
                if worker.poll() is not None:
                    self.assertEqual(worker.returncode, -9, (here / "log").read_text())
                    worker = self.start(here)
                if self.client.get(id)["outcome"] is not None:
                    break
                self.answer(id, here, given)
                time.sleep(0.02)
            self.assertEqual(self.client.result(id, PATIENCE_S).value, EXPECTED, case)
            effects = (here / "effects").read_text().split()
            # Only a step that was killed between its effect and its store has run again.
            again = [name for name in ("a", "b") if case == f"die in {name}"]
            self.assertEqual(sorted(effects), sorted(["a", "b", *again]), case)
            self.assertFalse((here / case).exists(), f"{case} was never reached")
            worker.kill()
            worker.wait()

    def test_wherever_worker_or_server_are_killed_the_result_is_the_same(self) -> None:
        for case in sampled():
            with self.subTest(case):
                self.run_case(case)


if __name__ == "__main__":
    unittest.main()
