"""A real `ff server` on a free loopback port with its own data directory, and a proxy that can cut its connections."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path
from typing import IO

SDK = Path(__file__).resolve().parent.parent
REPOSITORY = SDK.parent.parent
if str(SDK / "src") not in sys.path:
    sys.path.insert(0, str(SDK / "src"))

#: The limit of every wait in the tests; a busy machine is slow.
PATIENCE_S = 30.0


def binary() -> str:
    """The server's binary: FF_BIN, else the one built in the repository."""
    named = os.environ.get("FF_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise RuntimeError(f"FF_BIN names {named}, which is not a program")
        return named
    for kind in ("debug", "release"):
        place = REPOSITORY / "target" / kind / "ff"
        if os.access(place, os.X_OK):
            return str(place)
    raise unittest.SkipTest("no ff binary: build it, or set FF_BIN")


#: Outlives a killed test run just long enough to end its servers and remove their data.
_GUARDIAN = """
import os, shutil, signal, sys
left = {}
for line in sys.stdin:
    pid, _, directory = line.strip().partition(" ")
    left.pop(pid, None) if not directory else left.update({pid: directory})
for pid, directory in left.items():
    try:
        os.kill(int(pid), signal.SIGKILL)
    except ProcessLookupError:
        pass
    shutil.rmtree(directory, ignore_errors=True)
"""


@functools.lru_cache(None)
def _guardian() -> IO[str]:
    guardian = subprocess.Popen(
        [sys.executable, "-c", _GUARDIAN], stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
    )
    assert guardian.stdin is not None
    # Runs last in this process, after its servers have ended.
    atexit.register(guardian.communicate)
    return guardian.stdin


class Server:
    """A server process. It can be killed and started again with the same data and port."""

    def __init__(self, durability: str = "relaxed") -> None:
        self._durability = durability
        self.directory = tempfile.mkdtemp(prefix="ff-python-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts it and waits until it responds."""
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self._process = subprocess.Popen(
                [binary(), "server", "--no-auth", "--durability", self._durability,
                 "--listen", f"127.0.0.1:{self.port}", "--data-dir", os.path.join(self.directory, "data")],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        print(self._process.pid, self.directory, file=_guardian(), flush=True)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(Path(self.directory, "log").read_text())

    def kill(self) -> None:
        """Kills it, like a crash."""
        assert self._process is not None
        self._process.kill()
        print(self._process.pid, file=_guardian(), flush=True)
        self._process.wait()

    def close(self) -> None:
        """Ends it and removes its data."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Proxy:
    """Forwards connections to a server. After a cut, nothing gets through in either direction."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._cut = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on all data is lost."""
        self._cut.set()

    def drop(self) -> None:
        """Closes every connection; new ones are accepted."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def close(self) -> None:
        """Ends it."""
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                came, _ = self._listener.accept()
                to = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            self._sockets += [came, to]
            for here, there in ((came, to), (to, came)):
                threading.Thread(target=self._pass, args=(here, there), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = here.recv(65536)
                if self._cut.is_set():
                    threading.Event().wait()
                if not data:
                    break
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)


_shared: Server | None = None


def shared() -> Server:
    """The server that most tests share; each test uses its own lane."""
    global _shared
    if _shared is None:
        _shared = Server()
        atexit.register(_shared.close)
    return _shared


def until(condition, what: str = "the condition", patience_s: float = PATIENCE_S):  # type: ignore[no-untyped-def]
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {patience_s:g} s")
        time.sleep(0.02)
