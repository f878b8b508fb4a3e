"""Requests over httpx: any number at once, each repeated while that is safe and useful."""

from __future__ import annotations

import ssl
import time
from asyncio import sleep
from typing import Any, AsyncIterator, List, Mapping, Optional, Tuple

import httpx

from .. import payload
from ..errors import ConfigError, RequestError, TransportError, of_answer
from ..http.message import SILENCE_S, TIMEOUT_S, Request, Response, Retry
from ..http.origin import Origin

#: The maximum number of idle connections that are kept open.
KEPT_MAX = 32
#: The server closes an idle connection after 60 s. The client does not use one that was idle for longer than this.
KEPT_S = 45.0

#: The errors of a request whose connection the server has closed.
_CUT = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
#: The errors of a request that cannot have reached the server.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)


class AsyncTransport:
    """Sends requests in asyncio.

    Each connection has its own httpx client, because httpx checks all connections of a client for every request. Their
    number is not limited: each long poll occupies one, and many long polls must not delay a heartbeat.
    """

    def __init__(self, origin: Origin, *, timeout_s: float = TIMEOUT_S, retry: Optional[Retry] = None) -> None:
        self.origin = origin
        self.retry = retry or Retry()
        self._timeout_s = timeout_s
        # Without TLS the context is unused, but it keeps httpx from creating one for each connection.
        self._ssl = origin.ssl or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._kept: List[httpx.AsyncClient] = []
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
        """Sends JSON and returns the JSON of the response."""
        raw = None if body is None else payload.dump(body)
        return (await self.send(Request(method, path, query, raw, headers or {}, wait_s, repeatable))).json()

    async def send(self, request: Request) -> Response:
        """Sends a request, and repeats it while the error is retryable. Raises the server's errors."""
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
                pause = self.retry.pause(failures, error)
            await sleep(pause)

    async def _try(self, request: Request) -> Response:
        limit_s = (request.timeout_s or self._timeout_s) + request.wait_s
        until = time.monotonic() + limit_s
        said = self._said(request, httpx.Timeout(limit_s))
        while True:
            connection, was_kept = self._take()
            try:
                answer = await connection.send(said, stream=True)
                body = await self._whole(answer, until, limit_s)
            except httpx.HTTPError as error:
                await connection.aclose()
                if was_kept and request.repeatable and isinstance(error, _CUT):
                    # The server closed this idle connection, so the request uses another one.
                    continue
                raise self._failed(error, limit_s) from error
            except BaseException:
                # A late response must not be taken for that of the next request.
                await connection.aclose()
                raise
            await self._give(connection)
            return Response(answer.status_code, dict(answer.headers), body)

    def _said(self, request: Request, timeout: httpx.Timeout) -> httpx.Request:
        try:
            return httpx.Request(
                request.method,
                self.origin.target(request.path, request.query),
                content=request.body,
                headers=self.origin.headers(request.headers, request.body is not None),
                extensions={"timeout": timeout.as_dict()},
            )
        except httpx.InvalidURL as error:
            raise ConfigError(f"the address of the request is wrong: {error}") from error

    def _take(self) -> Tuple[httpx.AsyncClient, bool]:
        """A connection, and whether it is from an earlier request."""
        try:
            return self._kept.pop(), True
        except IndexError:
            return self._connection(), False

    def _connection(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=1, keepalive_expiry=KEPT_S)
        # Proxies and credentials in the environment are not for this server.
        return httpx.AsyncClient(verify=self._ssl, limits=limits, trust_env=False)

    async def _give(self, connection: httpx.AsyncClient) -> None:
        """Keeps a connection for the next request."""
        if self._closed or len(self._kept) >= KEPT_MAX:
            await connection.aclose()
        else:
            self._kept.append(connection)

    async def _whole(self, answer: httpx.Response, until: float, limit_s: float) -> bytes:
        pieces: List[bytes] = []
        async for piece in answer.aiter_bytes():
            pieces.append(piece)
            # The limit of httpx applies to each piece, so it does not stop a slow body.
            if time.monotonic() > until:
                raise TransportError(f"no answer from {self.origin.url} within {limit_s:g} s")
        return b"".join(pieces)

    async def lines(self, request: Request) -> "AsyncLines":
        """Opens a streaming response and returns its lines as they arrive. The caller reconnects with a cursor."""
        said = self._said(request, httpx.Timeout(self._timeout_s, read=SILENCE_S))
        connection = self._connection()
        try:
            answer = await connection.send(said, stream=True)
            if answer.status_code < 400:
                return AsyncLines(self.origin, connection, answer)
            raise of_answer(answer.status_code, dict(answer.headers), await answer.aread())
        except httpx.HTTPError as error:
            await connection.aclose()
            raise self._failed(error, SILENCE_S) from error
        except BaseException:
            await connection.aclose()
            raise

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await sleep(seconds)

    async def close(self) -> None:
        """Closes the idle connections. The others close after their response."""
        self._closed = True
        while self._kept:
            await self._kept.pop().aclose()

    def _failed(self, error: httpx.HTTPError, limit_s: float) -> TransportError:
        if isinstance(error, httpx.TimeoutException):
            said = f"no answer from {self.origin.url} within {limit_s:g} s"
        else:
            said = f"no answer from {self.origin.url}: {error or type(error).__name__}"
        return TransportError(said, sent=not isinstance(error, _UNSENT))


class AsyncLines:
    """A streaming response, line by line."""

    def __init__(self, origin: Origin, connection: httpx.AsyncClient, answer: httpx.Response) -> None:
        self._origin = origin
        self._connection = connection
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Only a line feed ends a line, because a payload may contain other separators.
        begun: List[bytes] = []
        try:
            async for piece in self._answer.aiter_bytes():
                *lines, rest = piece.split(b"\n")
                for line in lines:
                    yield b"".join([*begun, line])
                    begun = []
                begun.append(rest)
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise TransportError(f"no answer from {self._origin.url}: {error or type(error).__name__}") from error
        if any(begun):
            yield b"".join(begun)

    async def close(self) -> None:
        """Closes the response."""
        await self._answer.aclose()
        await self._connection.aclose()
