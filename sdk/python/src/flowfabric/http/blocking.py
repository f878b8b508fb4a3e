"""The transport of blocking code: http.client under a pool of connections that threads share."""

from __future__ import annotations

import http.client
import selectors
import socket
import ssl
import threading
import time
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from .. import payload
from ..errors import RequestError, TransportError, of_answer
from .message import SILENCE_S, TIMEOUT_S, Request, Response, Retry
from .origin import Origin

#: Connections kept open while nobody uses them.
IDLE_MAX = 16
#: The server closes a silent connection after 60 s; one that is older is not used again.
IDLE_S = 45.0


class Transport:
    """Sends requests from any number of threads."""

    def __init__(self, origin: Origin, *, timeout_s: float = TIMEOUT_S, retry: Optional[Retry] = None) -> None:
        self.origin = origin
        self.retry = retry or Retry()
        self._timeout_s = timeout_s
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        self._closed = False

    def json(
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
        return self.send(Request(method, path, query, raw, headers or {}, wait_s, repeatable)).json()

    def send(self, request: Request) -> Response:
        """Sends a request until it is answered or is not worth repeating; a refusal is raised."""
        request, failures = request.identified(), 0
        while True:
            try:
                response = self._try(request)
                if response.status < 400:
                    return response
                raise of_answer(response.status, response.headers, response.body)
            except RequestError as error:
                failures += 1
                error.request_id = error.request_id or request.headers["X-Request-Id"]
                if not self.retry.again(request, failures, error):
                    raise
                time.sleep(self.retry.pause(failures, error))

    def _try(self, request: Request) -> Response:
        connection, reused = self._take()
        try:
            answer = self._begin(connection, request, (request.timeout_s or self._timeout_s) + request.wait_s)
            body = answer.read()
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            connection.close()
            if reused and isinstance(error, (ConnectionError, http.client.BadStatusLine)) and request.repeatable:
                # The server closed a connection it had kept: the request goes over a fresh one.
                self._drop_idle()
                return self._try(request)
            raise _failed(self.origin, error) from error
        except BaseException:
            connection.close()
            raise
        response = Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
        if answer.will_close or self._closed:
            connection.close()
        else:
            self._give(connection)
        return response

    def _begin(
        self, connection: http.client.HTTPConnection, request: Request, timeout_s: float
    ) -> http.client.HTTPResponse:
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        length = len(request.body) if request.body is not None else (None if request.method == "GET" else 0)
        target = self.origin.target(request.path, request.query)
        connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.origin.headers(request.headers, length).items():
            connection.putheader(name, value)
        connection.endheaders(request.body)
        answer = connection.getresponse()
        if answer.length is None and not answer.chunked and answer.getheader("connection", "").lower() != "close":
            # http.client takes a head that was cut off for a whole one; nothing else looks like this.
            raise http.client.HTTPException("the connection was closed in the head of an answer")
        return answer

    def _take(self) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < IDLE_S and not _was_closed(connection):
                    return connection, True
                connection.close()
        return self._connection(), False

    def _connection(self) -> http.client.HTTPConnection:
        origin = self.origin
        if origin.ssl is not None:
            return http.client.HTTPSConnection(origin.host, origin.port, context=origin.ssl)
        return http.client.HTTPConnection(origin.host, origin.port)

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def lines(self, request: Request) -> "Lines":
        """Begins an answer that goes on: its lines come as the server sends them. One try; the caller goes on by a cursor."""
        connection = self._connection()
        try:
            answer = self._begin(connection, request, self._timeout_s)
            if answer.status >= 400:
                body = answer.read()
                raise of_answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
            if connection.sock is not None:
                connection.sock.settimeout(SILENCE_S)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _failed(self.origin, error) from error
        except BaseException:
            connection.close()
            raise
        return Lines(self.origin, connection, answer)

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def close(self) -> None:
        """Closes the connections nobody uses; those in use close after their answer."""
        self._closed = True
        self._drop_idle()


class Lines:
    """An answer that goes on, line by line."""

    def __init__(
        self, origin: Origin, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse
    ) -> None:
        self._origin = origin
        self._connection = connection
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                line = self._answer.readline()
            except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
                raise _failed(self._origin, error) from error
            if not line:
                return
            yield line

    def close(self) -> None:
        """Ends it."""
        self._answer.close()
        self._connection.close()


def _was_closed(connection: http.client.HTTPConnection) -> bool:
    """True when an idle connection has something to say, which can only be its end."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _failed(origin: Origin, error: BaseException) -> TransportError:
    text = str(error) or type(error).__name__
    unsent = isinstance(error, (ConnectionRefusedError, socket.gaierror))
    return TransportError(f"no answer from {origin.url}: {text}", sent=not unsent)
