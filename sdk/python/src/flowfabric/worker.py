"""Workers: handlers by kind, and the ways to run them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import re
import signal
import socket
import ssl
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar

from .errors import ConfigError
from .handler import Handler
from .http.origin import Origin
from .ids import mint
from .runtime import Runtime, Settings

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"(?!\.+\Z)[A-Za-z0-9._-]{1,64}\Z")


class Worker:
    """Claims executions and runs the handlers of their kinds.

    The return value of a handler completes its task. An exception fails it, and the execution's retry policy decides what
    follows. Plain functions run in threads, `async def` in the worker's event loop. In the background, the worker renews
    leases, repeats requests whose response was lost, and registers again when needed.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        namespace: str = "default",
        lanes: Sequence[str] = ("default",),
        capabilities: Sequence[str] = (),
        slots: int = 1,
        worker_id: Optional[str] = None,
        instance: Optional[str] = None,
        lease_ttl_ms: int = 30_000,
        drain_grace_s: float = 25.0,
        stop_grace_s: float = 5.0,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:32] or "worker"
        self._origin = Origin(url, token, ssl_context)
        self._settings = Settings(
            worker_id=worker_id or host,
            instance=instance or f"{worker_id or host}-{os.getpid()}-{mint()[-6:]}"[-64:],
            namespace=namespace,
            lanes=_checked("lanes", lanes),
            capabilities=list(capabilities),
            slots=slots,
            lease_ttl_ms=lease_ttl_ms,
            drain_grace_s=drain_grace_s,
            stop_grace_s=stop_grace_s,
        )
        if not _NAME.match(self._settings.instance):
            raise ConfigError(f"instance must be 1 to 64 of A-Z a-z 0-9 . _ -, got {self._settings.instance!r}")
        if slots < 1:
            raise ConfigError(f"slots must be at least 1, got {slots}")
        if not 1_000 <= lease_ttl_ms <= 3_600_000:
            raise ConfigError(f"lease_ttl_ms must be in 1000..=3600000, got {lease_ttl_ms}")
        if isinstance(capabilities, str) or any(not token or re.search(r"[,\s]", token) for token in capabilities):
            raise ConfigError("capabilities must be texts without commas and white space")
        self._handlers: Dict[str, Handler] = {}
        self._runtime: Optional[Runtime] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._stopped = False

    @property
    def instance(self) -> str:
        """The name of this process among all workers."""
        return self._settings.instance

    def task(self, kind: str) -> Callable[[F], F]:
        """Registers a function as the handler of a kind. It takes its input, its context, or both."""

        def register(function: F) -> F:
            if kind in self._handlers:
                raise ConfigError(f"{kind!r} has a handler already")
            self._handlers[kind] = Handler(kind, function)
            return function

        return register

    def run(self) -> None:
        """Works until SIGTERM or Ctrl-C. Then it claims no more, lets running tasks end, and unregisters.

        If the program has not configured logging, the worker's log is shown on stderr.
        """
        _show_log()
        asyncio.run(self.run_async())

    async def run_async(self, *, handle_signals: bool = True, ready: Optional[Callable[[], None]] = None) -> None:
        """The same in a running event loop. A cancellation shuts down like a signal; a second one hands nothing back."""
        if not self._handlers:
            raise ConfigError("a worker needs at least one handler: @worker.task(\"kind\")")
        self._loop = asyncio.get_running_loop()
        self._runtime = Runtime(self._origin, self._settings, self._handlers)
        if self._stopped:
            self._runtime.stop()
        heard = self._listen(self._loop, self._runtime) if handle_signals else []
        try:
            await self._runtime.run(ready or (lambda: None))
        finally:
            for undo in heard:
                undo()
            self._runtime = None
            self._loop = None

    @staticmethod
    def _listen(loop: asyncio.AbstractEventLoop, runtime: Runtime) -> List[Callable[[], object]]:
        """Installs the signal handlers. Returns functions that remove them."""
        undo: List[Callable[[], object]] = []
        if threading.current_thread() is not threading.main_thread():
            return undo
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, runtime.stop)
                undo.append(functools.partial(loop.remove_signal_handler, number))
            except NotImplementedError:
                # On Windows the event loop receives no signals, but Python does, and wakes the loop.
                before = signal.signal(number, lambda *_: loop.call_soon_threadsafe(runtime.stop))
                undo.append(functools.partial(signal.signal, number, before))
            except (RuntimeError, ValueError):
                # In an embedded interpreter, signals belong to its host.
                pass
        return undo

    def stop(self) -> None:
        """Tells a running worker to stop, from any thread. A second call tells it to hurry."""
        self._stopped = True
        loop, runtime = self._loop, self._runtime
        if loop is not None and runtime is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(runtime.stop)

    @contextlib.contextmanager
    def running(self, timeout_s: float = 30.0) -> Iterator["Worker"]:
        """Runs in a background thread during the block. The worker is registered when the block starts, and stops with it."""
        ready = threading.Event()
        failure: List[BaseException] = []

        def work() -> None:
            try:
                asyncio.run(self.run_async(handle_signals=False, ready=ready.set))
            except BaseException as error:
                failure.append(error)
            finally:
                ready.set()

        self._stopped = False
        thread = threading.Thread(target=work, name=f"flowfabric-{self.instance}", daemon=True)
        thread.start()
        try:
            if not ready.wait(timeout_s):
                raise TimeoutError(f"{self.instance} could not register within {timeout_s:g} s")
            if failure:
                raise failure[0]
            yield self
        finally:
            self.stop()
            thread.join()
        if failure:
            raise failure[0]


def _show_log() -> None:
    """Shows the log on stderr, unless the program has configured logging."""
    log = logging.getLogger("flowfabric")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        if log.level == logging.NOTSET:
            log.setLevel(logging.INFO)


def _checked(field: str, names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str) or not names:
        raise ConfigError(f"{field} must be a list with at least one name")
    for name in names:
        if not _NAME.match(name):
            raise ConfigError(f"{field} must be 1 to 64 of A-Z a-z 0-9 . _ -, got {name!r}")
    return list(names)
