"""The leases of this process: when each is renewed, and until when each is trusted.

***Invariant:** a handler is told to stop before another worker can hold its lease. A lease is trusted for four fifths of its
TTL after the last acknowledged renewal was *sent*, by this machine's monotonic clock. The store counts from a later moment.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from .recorded import Recorded
from .task import Task

#: A lease of unknown age is renewed after this time.
_UNKNOWN_AGE_S = 0.1
#: After this many failed renewals in a row a lease counts as unhealthy.
_UNHEALTHY_AFTER = 3


class CancelReason:
    """Why a handler is told to stop."""

    #: Another worker may hold the execution: stop, because every write would fail.
    LEASE_LOST = "lease_lost"
    #: The execution was cancelled with a grace period: clean up and raise; the task is cancelled.
    CANCEL_REQUESTED = "cancel_requested"
    #: The worker is drained, or the lease revoked with a grace period: raise; the task is handed back, against no limit.
    YIELD_REQUESTED = "yield_requested"
    #: The process shuts down and its grace period is over: raise; the task is handed back.
    SHUTDOWN = "shutdown"


class Lease:
    """The right to run one attempt."""

    def __init__(self, task: Task, ttl_s: float, sent: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.task = task
        self.ttl_s = ttl_s
        #: Why the handler should stop; None if it should not.
        self.reason: Optional[str] = None
        #: True once the engine knows that this run is over; nothing more is sent for it.
        self.set_aside = False
        #: What the handler recorded, and where this run of it stands.
        self.recorded = Recorded(task, ttl_s)
        self.failures = 0
        self.in_flight = False
        self._clock = clock
        self._told: List[Callable[[], None]] = []
        self._lock = threading.Lock()
        now = clock()
        # A long-polled claim got its lease at an unknown moment. The lease counts from now, and is renewed soon.
        #: True if the lease may be older than assumed; after a repeated claim, much older.
        self.of_unknown_age = now - sent > ttl_s / 6
        self._acknowledged = now if self.of_unknown_age else sent
        self.due = now + min(_UNKNOWN_AGE_S, ttl_s / 6) if self.of_unknown_age else sent + _third(ttl_s)

    def now(self) -> float:
        """The time of the clock that measures leases."""
        return self._clock()

    @property
    def trusted_until(self) -> float:
        """Until when no other worker can hold it, by the local clock."""
        return self._acknowledged + self.ttl_s * 0.8

    @property
    def trusted(self) -> bool:
        """True while no other worker can hold it."""
        return self.reason != CancelReason.LEASE_LOST and self._clock() < self.trusted_until

    @property
    def healthy(self) -> bool:
        """False after three failed renewals in a row."""
        return self.failures < _UNHEALTHY_AFTER

    def on_told(self, listener: Callable[[], None]) -> None:
        """Calls the listener when the handler is told to stop, or at once if that has happened."""
        with self._lock:
            if self.reason is None:
                self._told.append(listener)
                return
        listener()

    def tell(self, reason: str) -> None:
        """Tells the handler to stop. A lost lease overrides every other reason; otherwise the first reason stays."""
        with self._lock:
            first = self.reason is None
            if first or reason == CancelReason.LEASE_LOST:
                self.reason = reason
            listeners, self._told = self._told, []
        if first:
            for listener in listeners:
                listener()

    def settle(self, sent: float, item: Optional[Mapping[str, Any]]) -> None:
        """Handles the reply to a renewal that was sent at this time. An error ends this lease only."""
        if item is None or ("code" in item and item.get("retryable")):
            self.unanswered()
        elif "code" in item:
            self.refused()
        else:
            self.renewed(sent, item)

    def renewed(self, sent: float, answer: Mapping[str, Any]) -> None:
        """Handles an acknowledged renewal that was sent at this time."""
        self.in_flight = False
        self.failures = 0
        self._acknowledged = max(self._acknowledged, sent)
        self.due = sent + _third(self.ttl_s)
        if answer.get("cancel_requested"):
            self.tell(CancelReason.CANCEL_REQUESTED)
        elif answer.get("yield_requested"):
            self.tell(CancelReason.YIELD_REQUESTED)

    def refused(self) -> None:
        """Handles the engine's reply that the lease is over."""
        self.in_flight = False
        self.tell(CancelReason.LEASE_LOST)

    def unanswered(self) -> None:
        """Handles a failed renewal; the next one follows soon."""
        self.in_flight = False
        self.failures += 1
        self.due = self._clock() + self.ttl_s / 12 * random.uniform(0.9, 1.0)


class LeaseBook:
    """All leases of one worker. It decides which renewals are due, and sends nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._leases: Dict[str, Lease] = {}

    def add(self, lease: Lease) -> None:
        """Starts to renew a lease."""
        self._leases[lease.task.lease_id] = lease

    def remove(self, lease: Lease) -> None:
        """Stops renewing a lease."""
        self._leases.pop(lease.task.lease_id, None)

    def all(self) -> List[Lease]:
        """Every lease that is renewed."""
        return list(self._leases.values())

    def renew_soon(self) -> None:
        """Makes every renewal due now, because the engine may ask for some of the leases back."""
        now = self._clock()
        for lease in self._leases.values():
            lease.due = min(lease.due, now)

    def distrust(self) -> List[Lease]:
        """Removes every lease that was not renewed in time or is lost, and tells its handler."""
        over = [lease for lease in self._leases.values() if not lease.trusted]
        for lease in over:
            lease.tell(CancelReason.LEASE_LOST)
            self.remove(lease)
        return over

    def take_due(self) -> List[Lease]:
        """The leases to renew now. When one is due, those that are nearly due go with it."""
        now = self._clock()
        idle = [lease for lease in self._leases.values() if not lease.in_flight]
        if not any(lease.due <= now for lease in idle):
            return []
        batch = [lease for lease in idle if lease.due <= now + lease.ttl_s / 12]
        for lease in batch:
            lease.in_flight = True
        return batch

    def next_event(self) -> Optional[float]:
        """The next time at which a renewal is due or a lease is no longer trusted."""
        times = [
            lease.trusted_until if lease.in_flight else min(lease.trusted_until, lease.due)
            for lease in self._leases.values()
        ]
        return min(times) if times else None


def _third(ttl_s: float) -> float:
    # Up to a tenth earlier at random, so that the renewals of different processes spread.
    return ttl_s / 3 * random.uniform(0.9, 1.0)
