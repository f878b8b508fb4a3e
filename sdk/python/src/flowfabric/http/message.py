"""A request, its answer, and when it may be sent again."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, Dict, List, Mapping, Optional

from .. import payload
from ..errors import ApiError, RequestError, ServerFault, TransportError
from ..ids import mint

#: How long one try may take, on top of the time it was asked to wait.
TIMEOUT_S = 30.0
#: A stream says at least this often that it is alive.
SILENCE_S = 45.0


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked."""

    method: str
    path: str
    query: Optional[Mapping[str, object]] = None
    body: Optional[bytes] = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: How long the server was asked to hold the answer back.
    wait_s: float = 0.0
    #: True when the same request twice does what it does once.
    repeatable: bool = True
    #: How long one try may take instead of what the client was told.
    timeout_s: Optional[float] = None
    #: True to hand the first failure to the caller, who repeats by a rule of its own.
    once: bool = False

    def identified(self) -> "Request":
        """The same with an id for the logs of both sides, which every repetition carries."""
        if "X-Request-Id" in self.headers:
            return self
        return dataclasses.replace(self, headers={**self.headers, "X-Request-Id": mint()})


@dataclasses.dataclass(frozen=True)
class Response:
    """What came back."""

    status: int
    #: Names in lower case.
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; nothing when it is empty."""
        if not self.body:
            return None
        try:
            return payload.load(self.body)
        except ValueError as error:
            raise self._not_json(str(error)) from error

    def tasks(self) -> List[Mapping[str, Any]]:
        """The tasks of a claim. Whatever one of them carries, the others are read."""
        try:
            # {"tasks":[{"input":… is three levels: what a submitter wrote opens at the fourth.
            return list(payload.load_around(self.body, 4)["tasks"])
        except (ValueError, LookupError, TypeError) as error:
            raise self._not_json(f"{type(error).__name__}: {error}") from error

    def results(self, count: int) -> Mapping[str, Any]:
        """The answer to this many results, with the tasks that came along. Whatever a task carries, the rest is read."""
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
    """How often and how soon a transient failure is repeated; a pause is drawn between half of it and all of it."""

    tries: int = 6
    initial_s: float = 0.1
    max_s: float = 3.0

    def pause(self, failures: int, error: Optional[RequestError] = None) -> float:
        """How long to wait after this many failures in a row; a server's own word counts as a minimum."""
        pause = min(self.max_s, self.initial_s * 2.0 ** min(failures - 1, 16))
        said = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        return max(pause * random.uniform(0.5, 1.0), min(said, self.max_s))

    def again(self, request: Request, failures: int, error: RequestError) -> bool:
        """True when the request is to be sent once more."""
        if request.once or failures >= self.tries or not error.retryable:
            return False
        if isinstance(error, TransportError):
            return request.repeatable or not error.sent
        return True
