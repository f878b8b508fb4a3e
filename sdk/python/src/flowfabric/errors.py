"""All errors. There is one exception for each class of error codes, with the server's message."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Type

#: Codes which mean that the lease is over, for any call.
LEASE_CODES = frozenset(
    {"stale_lease", "lease_expired", "lease_revoked", "execution_not_active", "execution_not_found"}
)


class FlowFabricError(Exception):
    """The base class of all errors of this package."""


class ConfigError(FlowFabricError, ValueError):
    """A setting or an argument is wrong; nothing was sent."""


class RequestError(FlowFabricError):
    """A request did not succeed."""

    #: The stable error code.
    code: str = "transport"
    #: The HTTP status; None without a response.
    status: Optional[int] = None
    #: A description for people.
    detail: str = ""
    #: The problems by field of the request.
    fields: Mapping[str, str] = {}
    #: Further data by name: the outcome that won, the oldest cursor, the missing capabilities.
    facts: Mapping[str, str] = {}
    #: True if the same request may succeed later.
    retryable: bool = False
    #: The request's id, which is also in the server's log.
    request_id: Optional[str] = None


class TransportError(RequestError):
    """There was no response: the server is unreachable, or the connection was lost."""

    retryable = True

    def __init__(self, detail: str, *, sent: bool = True) -> None:
        super().__init__(detail)
        self.detail = detail
        #: False if the request certainly did not reach the server.
        self.sent = sent


class ApiError(RequestError):
    """The server returned an error; `code` is the reason."""

    def __init__(self, status: int, problem: Mapping[str, Any], request_id: Optional[str] = None) -> None:
        self.status = status
        self.code = str(problem.get("code", f"http_{status}"))
        self.detail = str(problem.get("detail") or problem.get("title") or "")
        self.fields = dict(problem.get("fields") or {})
        self.facts = dict(problem.get("facts") or {})
        self.retryable = bool(problem.get("retryable", status in (408, 429, 502, 503, 504, 507)))
        self.request_id = problem.get("request_id") or request_id
        self.retry_after: Optional[float] = None
        super().__init__(f"{self.code}: {self.detail}")

    @property
    def ends_lease(self) -> bool:
        """True if the lease of the request is over."""
        return self.code in LEASE_CODES


class InvalidRequest(ApiError):
    """400: a field is wrong; `fields` names it."""


class Unauthenticated(ApiError):
    """401: the token is missing or invalid."""


class Forbidden(ApiError):
    """403: the token does not allow it."""


class NotFound(ApiError):
    """404: the thing does not exist, or is not open."""


class Conflict(ApiError):
    """409: the current state does not allow it."""


class LeaseLost(Conflict):
    """409: the lease is over. Another worker may hold the execution, or it has ended."""


class CursorExpired(ApiError):
    """410: events behind the cursor are no longer kept. `facts["oldest"]` is the oldest cursor that works."""


class TooLarge(ApiError):
    """413: a field or the body is larger than its limit."""


class Unavailable(ApiError):
    """408, 429, 502 to 504 and 507: a temporary error; the same request may succeed later."""


class ServerFault(ApiError):
    """5xx: a defect of the server. Its log has the details under `request_id`."""


_BY_STATUS: Dict[int, Type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    408: Unavailable,
    410: CursorExpired,
    413: TooLarge,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: Unavailable,
}


def of_problem(status: int, problem: Mapping[str, Any], request_id: Optional[str] = None) -> ApiError:
    """The error for a problem document."""
    kind = _BY_STATUS.get(status, ServerFault if status >= 500 else ApiError)
    if kind is Conflict and str(problem.get("code")) in LEASE_CODES:
        kind = LeaseLost
    return kind(status, problem, request_id)


def of_answer(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error for a response. Without a problem document it still has a status."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": body[:200].decode("utf-8", "replace")}
    error = of_problem(status, problem, headers.get("x-request-id"))
    try:
        error.retry_after = float(headers["retry-after"])
    except (KeyError, ValueError):
        pass
    return error


def of_item(problem: Mapping[str, Any]) -> ApiError:
    """The error of one item in a batch, which has a code but no status."""
    code = str(problem.get("code", ""))
    if code == "store_full":
        status = 507
    elif problem.get("retryable"):
        status = 503
    elif code.endswith("_not_found"):
        status = 404
    elif code == "too_large":
        status = 413
    elif code in ("invalid_argument", "capability_invalid", "cycle_detected"):
        status = 400
    else:
        status = 409
    return of_problem(status, problem)


# Exceptions that a handler raises to end its task in a certain way.


class TaskError(FlowFabricError):
    """Fails the task with a category. Can also set whether and when it is retried."""

    #: A handler raised an error.
    HANDLER = "handler_error"
    #: A handler ended with something that is not an `Exception`, such as SystemExit.
    PANIC = "handler_panic"
    #: The input does not fit the handler.
    PAYLOAD_DECODE = "extractor_payload_decode"
    #: The handler returned a result although a step had set its attempt aside.
    SWALLOWED = "set_aside_swallowed"

    def __init__(
        self,
        reason: str,
        category: str = HANDLER,
        *,
        retryable: Optional[bool] = None,
        retry_after_ms: Optional[int] = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.category = category
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms


class NonRetryable(TaskError):
    """Fails the execution for good, whatever its retry policy."""

    def __init__(self, reason: str, category: str = TaskError.HANDLER) -> None:
        super().__init__(reason, category, retryable=False)


class ApprovalMissing(NonRetryable):
    """An approval ended, by its time or an operator, before enough people had approved. It is not asked for again."""

    def __init__(self, step: str, by: str, need: int) -> None:
        super().__init__(f"approval {step!r} was ended by {by} before {need} had approved", "approval_missing")
        self.step = step
        self.need = need


class RetryAfter(TaskError):
    """Fails the attempt, and delays the next one by at least this time, for example after a provider's 429."""

    def __init__(self, reason: str, retry_after_ms: int, category: str = TaskError.HANDLER) -> None:
        super().__init__(reason, category, retry_after_ms=retry_after_ms)


class SetAside(BaseException):
    """This run of the handler is over, and the engine knows it. Do not catch this.

    It is not an `Exception`, so `except Exception` in a handler does not catch it. A handler that catches it anyway changes
    nothing: the lease is over, and its return value is not sent.
    """


class Suspended(SetAside):
    """The execution waits for signals. The handler is called again from its beginning when the wait ends."""

    def __init__(self, suspension_id: str) -> None:
        super().__init__(f"the execution is suspended ({suspension_id}); this run of its handler is over")
        self.suspension_id = suspension_id


class WaitingForChildren(SetAside):
    """The execution waits for its children. The handler is called again when all have ended."""

    def __init__(self, open_children: int) -> None:
        super().__init__(f"the execution waits for {open_children} children; this run of its handler is over")
        self.open_children = open_children


class HandedBack(SetAside):
    """The handler delayed, yielded or cancelled the attempt."""

    def __init__(self, outcome: str) -> None:
        super().__init__(f"the attempt is {outcome}; this run of its handler is over")
        self.outcome = outcome


class BudgetSpent(SetAside):
    """A report exceeded a hard limit, and the budget ended the lease. The execution is parked, failed or cancelled."""

    def __init__(self, answer: Any) -> None:
        super().__init__("a hard limit of the budget is met; this run of its handler is over")
        #: The outcome of the report.
        self.answer = answer
