"""The transport of asyncio: HTTP/1.1 on asyncio's own streams."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Tuple

from .. import payload
from ..deadline import within
from ..errors import ConfigError, RequestError, TransportError, of_answer
from .message import SILENCE_S, TIMEOUT_S, Request, Response, Retry
from .origin import Origin

IDLE_MAX = 32
IDLE_S = 45.0
#: The longest line of a head, and of a stream of events: a frame with its payload in base64 fits.
LINE_MAX = 2 * 1024 * 1024

_Pipe = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Malformed(Exception):
    """The other side does not speak HTTP/1.1."""


class AsyncTransport:
    """Sends requests from the tasks of one event loop."""

    def __init__(self, origin: Origin, *, timeout_s: float = TIMEOUT_S, retry: Optional[Retry] = None) -> None:
        self.origin = origin
        self.retry = retry or Retry()
        self._timeout_s = timeout_s
        self._idle: List[Tuple[float, _Pipe]] = []
        self._closed = False

    async def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Optional[Mapping[str, object]] = None,
        headers: Optional[Mapping[str, str]] = None,
        wait_s: float = 0.0,
        repeatable: bool = True,
    ) -> Any:
        """Sends JSON and answers JSON."""
        raw = None if body is None else payload.dump(body)
        return (await self.send(Request(method, path, query, raw, headers or {}, wait_s, repeatable))).json()

    async def send(self, request: Request) -> Response:
        """Sends a request until it is answered or is not worth repeating; a refusal is raised."""
        request, failures = request.identified(), 0
        while True:
            try:
                response = await self._try(request)
                if response.status < 400:
                    return response
                raise of_answer(response.status, response.headers, response.body)
            except RequestError as error:
                failures += 1
                error.request_id = error.request_id or request.headers["X-Request-Id"]
                if not self.retry.again(request, failures, error):
                    raise
                await asyncio.sleep(self.retry.pause(failures, error))

    async def _try(self, request: Request) -> Response:
        limit = (request.timeout_s or self._timeout_s) + request.wait_s
        try:
            return await within(limit, self._exchange(request))
        except asyncio.TimeoutError as error:
            raise TransportError(f"no answer from {self.origin.url} within {limit:g} s") from error

    async def _exchange(self, request: Request) -> Response:
        head = self._asked(request)
        pipe, reused = await self._take()
        try:
            status, headers = await self._begin(pipe, head, request.body)
            body = await _whole(pipe[0], request.method, status, headers)
        except (OSError, EOFError, _Malformed, asyncio.LimitOverrunError, ValueError) as error:
            _shut(pipe)
            if reused and request.repeatable and isinstance(error, (ConnectionError, EOFError)):
                # The server closed a connection it had kept: the request goes over a fresh one.
                self._drop_idle()
                return await self._exchange(request)
            raise _failed(self.origin, error) from error
        except BaseException:
            # Given up in the middle: what may still come must not be taken for another answer.
            _shut(pipe)
            raise
        if self._closed or headers.get("connection", "").lower() == "close" or not _has_length(headers, status):
            _shut(pipe)
        elif len(self._idle) < IDLE_MAX:
            self._idle.append((time.monotonic(), pipe))
        else:
            _shut(pipe)
        return Response(status, headers, body)

    def _asked(self, request: Request) -> bytes:
        """The head of a request. What cannot be said in one is the caller's mistake, which no repetition mends."""
        length = len(request.body) if request.body is not None else (None if request.method == "GET" else 0)
        lines = [f"{request.method} {self.origin.target(request.path, request.query)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.origin.headers(request.headers, length).items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ConfigError("a header must be one line")
        try:
            return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        except UnicodeEncodeError as error:
            raise ConfigError(f"a header cannot be sent: {error}") from error

    async def _begin(self, pipe: _Pipe, head: bytes, body: Optional[bytes]) -> Tuple[int, Dict[str, str]]:
        reader, writer = pipe
        writer.write(head + (body or b""))
        await writer.drain()
        return await _head(reader)

    async def _take(self) -> Tuple[_Pipe, bool]:
        while self._idle:
            since, pipe = self._idle.pop()
            if time.monotonic() - since < IDLE_S and not pipe[0].at_eof() and not pipe[1].is_closing():
                return pipe, True
            _shut(pipe)
        return await self._connect(), False

    async def _connect(self) -> _Pipe:
        origin = self.origin
        try:
            return await asyncio.open_connection(origin.host, origin.port, ssl=origin.ssl, limit=LINE_MAX)
        except (OSError, ssl.SSLError) as error:
            raise _failed(origin, error, sent=False) from error

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for _, pipe in idle:
            _shut(pipe)

    async def lines(self, request: Request) -> "AsyncLines":
        """Begins an answer that goes on: its lines come as the server sends them. One try; the caller goes on by a cursor."""
        head = self._asked(request)
        try:
            pipe = await within(self._timeout_s, self._connect())
        except asyncio.TimeoutError as error:
            raise _failed(self.origin, error, sent=False) from error
        try:
            status, headers = await within(self._timeout_s, self._begin(pipe, head, request.body))
            if status >= 400:
                body = await within(self._timeout_s, _whole(pipe[0], request.method, status, headers))
                raise of_answer(status, headers, body)
        except (OSError, EOFError, _Malformed, ValueError, asyncio.TimeoutError) as error:
            _shut(pipe)
            raise _failed(self.origin, error) from error
        except BaseException:
            _shut(pipe)
            raise
        return AsyncLines(self.origin, pipe, headers)

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Closes the connections nobody uses; those in use close after their answer."""
        self._closed = True
        self._drop_idle()


class AsyncLines:
    """An answer that goes on, line by line."""

    def __init__(self, origin: Origin, pipe: _Pipe, headers: Mapping[str, str]) -> None:
        self._origin = origin
        self._pipe = pipe
        self._headers = headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = b""
        pieces = _pieces(self._pipe[0], self._headers)
        while True:
            try:
                piece = await within(SILENCE_S, _next(pieces))
            except (OSError, EOFError, _Malformed, ValueError, asyncio.TimeoutError) as error:
                raise _failed(self._origin, error) from error
            if piece is None:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
        if rest:
            yield rest

    async def close(self) -> None:
        """Ends it."""
        _shut(self._pipe)


async def _next(pieces: AsyncIterator[bytes]) -> Optional[bytes]:
    async for piece in pieces:
        return piece
    return None


async def _head(reader: asyncio.StreamReader) -> Tuple[int, Dict[str, str]]:
    while True:
        line = await reader.readline()
        if not line:
            raise EOFError("the connection was closed before an answer")
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise _Malformed(f"not an HTTP/1.1 answer: {line[:80]!r}")
        headers: Dict[str, str] = {}
        while True:
            line = await reader.readline()
            if not line:
                raise EOFError("the connection was closed in the head of an answer")
            text = line.decode("latin-1").rstrip("\r\n")
            if not text:
                break
            name, _, value = text.partition(":")
            headers[name.strip().lower()] = value.strip()
        status = int(rest[:3])
        if status >= 200:
            return status, headers


def _has_length(headers: Mapping[str, str], status: int) -> bool:
    return status in (204, 304) or "content-length" in headers or _chunked(headers)


def _chunked(headers: Mapping[str, str]) -> bool:
    return "chunked" in headers.get("transfer-encoding", "").lower()


async def _whole(reader: asyncio.StreamReader, method: str, status: int, headers: Mapping[str, str]) -> bytes:
    if method == "HEAD" or status in (204, 304):
        return b""
    if "content-length" in headers and not _chunked(headers):
        return await reader.readexactly(int(headers["content-length"]))
    return b"".join([piece async for piece in _pieces(reader, headers)])


async def _pieces(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if not _chunked(headers):
        left = int(headers["content-length"]) if "content-length" in headers else None
        while left is None or left > 0:
            piece = await reader.read(65536 if left is None else min(left, 65536))
            if not piece:
                if left is None:
                    return
                raise EOFError("the connection was closed in the middle of an answer")
            left = None if left is None else left - len(piece)
            yield piece
        return
    while True:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the connection was closed in the middle of an answer")
        size = int(line.split(b";", 1)[0], 16)
        if size == 0:
            while (await reader.readline()).strip():
                pass
            return
        piece = await reader.readexactly(size)
        await reader.readexactly(2)
        yield piece


def _shut(pipe: _Pipe) -> None:
    try:
        pipe[1].close()
    except RuntimeError:
        # The loop it belongs to has ended, and the connection with it.
        pass


def _failed(origin: Origin, error: BaseException, *, sent: bool = True) -> TransportError:
    text = str(error) or type(error).__name__
    unsent = isinstance(error, (ConnectionRefusedError, socket.gaierror))
    return TransportError(f"no answer from {origin.url}: {text}", sent=sent and not unsent)
