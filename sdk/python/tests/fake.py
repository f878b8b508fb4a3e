"""A fake server with the responses that a test wants, for cases that are rare with a real one."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple

#: The status and the body of a response; None closes the connection without one.
Answer = Optional[Tuple[int, Any]]


class Fake:
    """Accepts workers. `answers` handles a request by its verb; other requests get a neutral response."""

    def __init__(self, **answers: Callable[[Dict[str, Any]], Answer]) -> None:
        self.said: List[Tuple[str, Dict[str, Any]]] = []
        self._answers = answers
        self._over = threading.Event()
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                answer = fake._answer(self.path.rsplit("/", 1)[1] if self.command == "POST" else "leave", said)
                if answer is None:
                    self.close_connection = True
                    return
                body = answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("content-length", str(len(body)))
                # The client may be gone.
                with contextlib.suppress(OSError):
                    self.end_headers()
                    self.wfile.write(body)

            do_DELETE = do_POST

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stops the server."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def all(self, verb: str) -> List[Dict[str, Any]]:
        """All requests with this verb."""
        with self._lock:
            return [said for one, said in self.said if one == verb]

    def _answer(self, verb: str, said: Dict[str, Any]) -> Answer:
        with self._lock:
            self.said.append((verb, said))
        own = self._answers.get(verb)
        if own is not None:
            return own(said)
        if verb == "register":
            return 200, {"heartbeat_ms": 10_000, "expires_at": 1}
        if verb == "heartbeat":
            return 200, {"leases": [renewed(one) for one in said.get("renew", [])], "draining": False}
        if verb == "results":
            return 200, {"results": [completed(one) for one in said["results"]], "tasks": []}
        if verb == "attend":
            self._over.wait(20)
            return 200, {"draining": False}
        return 200, {}

    def completed(self) -> List[str]:
        """The executions whose results were sent, including repetitions."""
        return [one["execution_id"] for said in self.all("results") for one in said["results"]]

    def nothing(self) -> Answer:
        """The response to a claim without work."""
        self._over.wait(20)
        return 200, {"tasks": []}


def task(name: str, kind: str = "k", **fields: Any) -> Dict[str, Any]:
    """A claimed task."""
    return {
        "execution_id": name, "attempt_index": 0, "attempt_id": f"attempt-{name}", "lease_id": f"lease-{name}",
        "lease_epoch": 1, "lease_expires_at": 1, "lane": "l", "kind": kind, "frames": 0, "attempt_type": "initial",
        "namespace": "default", "priority": 0, "tags": {}, "created_at": 1, **fields,
    }


def renewed(renewal: Dict[str, Any]) -> Dict[str, Any]:
    """The response to a successful renewal."""
    return {
        "execution_id": renewal["execution_id"], "lease_expires_at": 1, "cancel_requested": False, "yield_requested": False,
    }


def completed(result: Dict[str, Any]) -> Dict[str, Any]:
    """The response to an accepted result."""
    return {"execution_id": result["execution_id"], "outcome": "completed", "replayed": False}
