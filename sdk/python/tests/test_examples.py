"""The examples and the worker of the README run unchanged."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import unittest

from server import PATIENCE_S, REPOSITORY, SDK, shared

from flowfabric import Client


class ExamplesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "FF_URL": shared().url}

    def run_file(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_an_approval_waits_for_two_of_three(self) -> None:
        self.assertEqual(self.run_file(str(SDK / "examples" / "approval.py")), "120 approved by bob, eve\n")

    def test_a_document_is_counted_by_children(self) -> None:
        self.assertEqual(self.run_file(str(SDK / "examples" / "fan_out.py")), "15 words\n")

    def test_the_hello_worker_greets_until_it_is_told_to_stop(self) -> None:
        process = subprocess.Popen([sys.executable, str(SDK / "examples" / "hello_worker.py")], env=self.environment)
        try:
            with Client(shared().url) as client:
                id = client.submit("greet", {"name": "Ada", "times": 2}).execution_id
                self.assertEqual(client.result(id, PATIENCE_S).value, "Hello, Ada!")
                self.assertEqual(len(client.read_stream(id).frames), 2)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE_S), 0)
        finally:
            process.kill()
            process.wait()

    def test_the_python_of_the_pages_runs(self) -> None:
        for page, runs in ((SDK / "README.md", 1), (REPOSITORY / "docs" / "python.md", 1)):
            blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
            whole = [block for block in blocks if "running()" in block]
            self.assertGreaterEqual(len(whole), runs, page)
            for block in whole:
                self.run_file("-c", block.replace("http://127.0.0.1:7433", shared().url))
            for block in blocks:
                compile(block, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


if __name__ == "__main__":
    unittest.main()
