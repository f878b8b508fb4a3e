"""A real `ff server` on a free loopback port with a data directory of its own, and a proxy that can cut it off."""

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

#: What every wait in the tests is bounded by; a busy machine is slow.
PATIENCE_S = 30.0


def binary() -> str:
    """The server's binary: FF_BIN, else what the repository has built."""
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


#: Outlives a test run that is killed, just long enough to end the servers it leaves and remove their data.
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
    # The last thing this process does, after its servers have ended.
    atexit.register(guardian.communicate)
    return guardian.stdin


class Server:
    """A server process; it can be killed and started again over the same data and port."""

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
        """Starts it and waits until it answers."""
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
        """Ends it without a word, as a crash does."""
        assert self._process is not None
        self._process.kill()
        print(self._process.pid, file=_guardian(), flush=True)
        self._process.wait()

    def close(self) -> None:
        """Ends it and removes its data."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Proxy:
    """Passes connections on to a server until it is cut; then nothing gets through in either direction."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._cut = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on packets vanish."""
        self._cut.set()

    def drop(self) -> None:
        """Ends every connection; new ones are taken."""
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
    """The server most tests share; each uses a lane of its own."""
    global _shared
    if _shared is None:
        _shared = Server()
        atexit.register(_shared.close)
    return _shared


def until(condition, what: str = "the condition", patience_s: float = PATIENCE_S):  # type: ignore[no-untyped-def]
    """Waits until something is true, and answers it."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {patience_s:g} s")
        time.sleep(0.02)
