"""Both transports with a server that responds in every way that HTTP/1.1 allows, and in some invalid ways."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, List, Optional

import server  # noqa: F401 - finds the package

from flowfabric import Retry, ServerFault, TransportError, Unavailable
from flowfabric.aio.transport import AsyncTransport
from flowfabric.blocking.transport import Transport
from flowfabric.http.message import Request
from flowfabric.http.origin import Origin

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}"
CLOSE = "close"


class Stub:
    """Sends the n-th response for the n-th request; CLOSE closes the connection before the next one."""

    def __init__(self, answers: List[Any], context: Optional[ssl.SSLContext] = None) -> None:
        self.answers = list(answers)
        self.heads: List[str] = []
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with contextlib.suppress(OSError, ssl.SSLError):
                    if self._context is not None:
                        connection = self._context.wrap_socket(connection, server_side=True)
                    self._talk(connection)
                connection.close()

    def _talk(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = lines.readline()
                    if not line:
                        return
                    head += line
                text = head.decode().lower()
                self.heads.append(head.decode())
                if "content-length: " in text:
                    lines.read(int(text.split("content-length: ")[1].split("\r\n")[0]))
                answer: Any = self.answers.pop(0) if self.answers else CLOSE
                if answer != CLOSE:
                    connection.sendall(answer)
                if self.answers and self.answers[0] == CLOSE:
                    self.answers.pop(0)
                    return
                if answer == CLOSE:
                    return


def blocking(url: str, request: Request, context: Optional[ssl.SSLContext], times: int, retry: Retry) -> List[Any]:
    transport = Transport(Origin(url, "secret", context), timeout_s=2.0, retry=retry)
    try:
        return [transport.send(request).json() for _ in range(times)]
    finally:
        transport.close()


def in_asyncio(url: str, request: Request, context: Optional[ssl.SSLContext], times: int, retry: Retry) -> List[Any]:
    async def work() -> List[Any]:
        transport = AsyncTransport(Origin(url, "secret", context), timeout_s=2.0, retry=retry)
        try:
            return [(await transport.send(request)).json() for _ in range(times)]
        finally:
            await transport.close()

    return asyncio.run(work())


class HttpTest(unittest.TestCase):
    def both(
        self,
        answers: List[Any],
        check: Callable[[Callable[[], List[Any]], Stub], None],
        request: Request = Request("POST", "/x", None, b"{}"),
        times: int = 1,
        tries: int = 1,
    ) -> None:
        for send in (blocking, in_asyncio):
            stub = Stub(answers)
            with self.subTest(send.__name__):
                check(lambda: send(stub.url, request, None, times, Retry(tries=tries, initial_s=0.01)), stub)
            stub.close()

    def answers(self, answers: List[Any], expected: List[Any], **how: Any) -> None:
        self.both(answers, lambda send, _: self.assertEqual(send(), expected), **how)

    def test_bodies_may_have_a_length_be_chunked_or_end_with_the_connection(self) -> None:
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n{\"a\r\n4\r\n\":1}\r\n0\r\nt: u\r\n\r\n"
        until_end = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"a\":1}"
        early = b"HTTP/1.1 100 Continue\r\n\r\n" + OK
        for answer in (OK, chunked, early):
            self.answers([answer, answer], [{"a": 1}, {"a": 1}], times=2)
        self.answers([until_end, CLOSE, OK], [{"a": 1}, {"a": 1}], times=2)
        self.answers([b"HTTP/1.1 204 No Content\r\n\r\n", OK], [None, {"a": 1}], times=2)

    def test_the_token_and_the_length_are_sent(self) -> None:
        def check(send: Callable[[], List[Any]], stub: Stub) -> None:
            send()
            head = stub.heads[0]
            self.assertTrue(head.startswith("POST /x HTTP/1.1\r\n"))
            for line in ("Authorization: Bearer secret", "Content-Length: 2", "Content-Type: application/json"):
                self.assertIn(f"\r\n{line}\r\n", head)

        self.both([OK], check)

    def test_a_connection_that_the_server_closed_is_replaced_without_a_word(self) -> None:
        self.answers([OK, CLOSE, OK, CLOSE, OK], [{"a": 1}] * 3, times=3)

    def test_what_is_no_answer_is_a_transport_error(self) -> None:
        cut = b"HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n{\"a\":1}"
        for wrong in (b"SSH-2.0-x\r\n\r\n", cut, b"HTTP/1.1 200", CLOSE):
            def check(send: Callable[[], List[Any]], stub: Stub) -> None:
                with self.assertRaises(TransportError):
                    send()
            self.both([wrong, CLOSE], check)

    def test_a_transient_failure_is_repeated_and_a_lasting_one_is_raised(self) -> None:
        body = b'{"code":"try_again","retryable":true}'
        busy = b"HTTP/1.1 503 x\r\nretry-after: 0\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        self.answers([busy, busy, OK], [{"a": 1}], tries=3)

        def same_id(send: Callable[[], List[Any]], stub: Stub) -> None:
            send()
            ids = {line for head in stub.heads for line in head.split("\r\n") if line.startswith("X-Request-Id: ")}
            self.assertEqual((len(stub.heads), len(ids)), (3, 1), "every repetition carries the same id")

        self.both([busy, CLOSE, CLOSE, OK], same_id, tries=3)
        self.answers([CLOSE, OK], [{"a": 1}], tries=3)

        def refused(kind: Any) -> Callable[[Callable[[], List[Any]], Stub], None]:
            def check(send: Callable[[], List[Any]], stub: Stub) -> None:
                with self.assertRaises(kind):
                    send()
                self.assertEqual(len(stub.heads), 1 if kind is not Unavailable else 2)
            return check

        self.both([busy, busy, OK], refused(Unavailable), tries=2)
        self.both([CLOSE, OK], refused(TransportError), tries=3, request=Request("POST", "/", repeatable=False))
        self.both([OK.replace(b"{", b"x")], refused(ServerFault), tries=3)

    def test_a_body_that_came_too_slowly_is_sent_again(self) -> None:
        body = b'{"code":"too_slow","retryable":true}'
        for said in (body, b"<html>"):
            slow = b"HTTP/1.1 408 x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(said), said)
            self.answers([slow, CLOSE, OK], [{"a": 1}], tries=2)

        def refused(send: Callable[[], List[Any]], stub: Stub) -> None:
            with self.assertRaises(Unavailable):
                send()

        self.both([slow, CLOSE], refused, tries=1)

    def test_a_header_that_cannot_be_sent_is_refused_at_once(self) -> None:
        def refused(send: Callable[[], List[Any]], stub: Stub) -> None:
            with self.assertRaises(ValueError):
                send()
            self.assertEqual(stub.heads, [])

        for cursor in ("a\r\nb: c", "\u20ac"):
            self.both([OK], refused, tries=3, request=Request("GET", "/", headers={"Last-Event-ID": cursor}))

    def test_an_answer_that_does_not_come_is_given_up(self) -> None:
        def check(send: Callable[[], List[Any]], stub: Stub) -> None:
            with self.assertRaises(TransportError):
                send()

        self.both([b""], check, request=Request("GET", "/", timeout_s=0.2))

    @unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
    def test_tls_is_verified(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            key, certificate = Path(directory, "key"), Path(directory, "cert")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                 "-keyout", str(key), "-out", str(certificate)],
                check=True, capture_output=True,
            )
            served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            served.load_cert_chain(certificate, key)
            trusting = ssl.create_default_context(cafile=str(certificate))
            for send in (blocking, in_asyncio):
                with self.subTest(send.__name__):
                    stub = Stub([OK, OK], served)
                    self.assertEqual(send(stub.url, Request("GET", "/"), trusting, 2, Retry(tries=1)), [{"a": 1}] * 2)
                    with self.assertRaises(TransportError):
                        send(stub.url, Request("GET", "/"), None, 1, Retry(tries=1))
                    stub.close()


if __name__ == "__main__":
    unittest.main()
