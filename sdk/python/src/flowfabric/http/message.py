"""A request, its response, and when it may be repeated."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, Dict, List, Mapping, Optional

from .. import payload
from ..errors import ApiError, RequestError, ServerFault, TransportError
from ..ids import mint

#: How long one try may take, in addition to the time of its long poll.
TIMEOUT_S = 30.0
#: A stream sends something at least this often.
SILENCE_S = 45.0


@dataclasses.dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Optional[Mapping[str, object]] = None
    body: Optional[bytes] = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: The time of the long poll.
    wait_s: float = 0.0
    #: True if a repeated request has no further effect.
    repeatable: bool = True
    #: How long one try may take, instead of the client's setting.
    timeout_s: Optional[float] = None
    #: True to raise the first error, because the caller repeats the request itself.
    once: bool = False

    def identified(self) -> "Request":
        """The same request with an id for the logs of both sides; repetitions have the same id."""
        if "X-Request-Id" in self.headers:
            return self
        return dataclasses.replace(self, headers={**self.headers, "X-Request-Id": mint()})


@dataclasses.dataclass(frozen=True)
class Response:
    """One response."""

    status: int
    #: Header names are in lower case.
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None if it is empty."""
        if not self.body:
            return None
        try:
            return payload.load(self.body)
        except ValueError as error:
            raise self._not_json(str(error)) from error

    def tasks(self) -> List[Mapping[str, Any]]:
        """The tasks of a claim. If one of them cannot be read, the others still are."""
        try:
            # {"tasks":[{"input":… is three levels: a submitter's own value opens at the fourth.
            return list(payload.load_around(self.body, 4)["tasks"])
        except (ValueError, LookupError, TypeError) as error:
            raise self._not_json(f"{type(error).__name__}: {error}") from error

    def results(self, count: int) -> Mapping[str, Any]:
        """The response to this many results, with new tasks. If a task cannot be read, the rest still is."""
        try:
            # {"results":[…],"tasks":[{"input":… has the same three levels.
            answer: Mapping[str, Any] = payload.load_around(self.body, 4)
            if len(answer["results"]) != count:
                raise ValueError(f"{len(answer['results'])} of {count} results are answered")
            return answer
        except (ValueError, LookupError, TypeError) as error:
            raise self._not_json(f"{type(error).__name__}: {error}") from error

    def _not_json(self, why: str) -> ServerFault:
        return ServerFault(self.status, {"code": "not_json", "detail": f"the answer is not the JSON it should be: {why}"})


@dataclasses.dataclass(frozen=True)
class Retry:
    """How often and how soon a temporary failure is retried. A pause is random between half and all of its length."""

    tries: int = 6
    initial_s: float = 0.1
    max_s: float = 3.0

    def pause(self, failures: int, error: Optional[RequestError] = None) -> float:
        """The pause after this many failures in a row, at least the server's `Retry-After`."""
        pause = min(self.max_s, self.initial_s * 2.0 ** min(failures - 1, 16))
        said = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        return max(pause * random.uniform(0.5, 1.0), min(said, self.max_s))

    def again(self, request: Request, failures: int, error: RequestError) -> bool:
        """True if the request should be sent again."""
        if request.once or failures >= self.tries or not error.retryable:
            return False
        if isinstance(error, TransportError):
            return request.repeatable or not error.sent
        return True
