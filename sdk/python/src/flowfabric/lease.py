"""Leases as this process knows them: when each is renewed, and when one can no longer be trusted.

**Invariant:** a handler is told to stop before anyone else can hold its lease. A lease is trusted for four fifths of its
TTL after the moment the last acknowledged renewal was *sent*, by this machine's monotonic clock; the store counts from a
later moment.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from .task import Task

#: A lease whose start is not known to be recent is renewed this soon.
_UNKNOWN_AGE_S = 0.1
#: After this many failed renewals in a row a lease counts as unhealthy.
_UNHEALTHY_AFTER = 3


class CancelReason:
    """Why a handler is told to stop."""

    #: Somebody else may hold the execution: stop, every write would be refused.
    LEASE_LOST = "lease_lost"
    #: Somebody cancelled with a grace: clean up and raise; the task is cancelled.
    CANCEL_REQUESTED = "cancel_requested"
    #: The worker is drained, or the lease revoked with a grace: raise; the task is handed back, counted nowhere.
    YIELD_REQUESTED = "yield_requested"
    #: The process goes down and its grace is over: raise; the task is handed back.
    SHUTDOWN = "shutdown"


class Lease:
    """The right to run one attempt."""

    def __init__(self, task: Task, ttl_s: float, sent: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.task = task
        self.ttl_s = ttl_s
        #: Why the handler is told to stop; None while it is not.
        self.reason: Optional[str] = None
        #: The engine knows that this run is over: nothing more is sent for it.
        self.set_aside = False
        self.failures = 0
        self.in_flight = False
        self._clock = clock
        self._told: List[Callable[[], None]] = []
        self._lock = threading.Lock()
        now = clock()
        # A claim that waited for work got its lease at an unknown moment: it counts from now, and a renewal follows soon.
        #: True when the lease may be older than it is trusted to be, and much older when the claim was repeated.
        self.of_unknown_age = now - sent > ttl_s / 6
        self._acknowledged = now if self.of_unknown_age else sent
        self.due = now + min(_UNKNOWN_AGE_S, ttl_s / 6) if self.of_unknown_age else sent + _third(ttl_s)

    def now(self) -> float:
        """The moment by the clock that leases are measured with."""
        return self._clock()

    @property
    def trusted_until(self) -> float:
        """Until when nobody else can hold it, by the local clock."""
        return self._acknowledged + self.ttl_s * 0.8

    @property
    def trusted(self) -> bool:
        """True while nobody else can hold it."""
        return self.reason != CancelReason.LEASE_LOST and self._clock() < self.trusted_until

    @property
    def healthy(self) -> bool:
        """False after three failed renewals in a row."""
        return self.failures < _UNHEALTHY_AFTER

    def on_told(self, listener: Callable[[], None]) -> None:
        """Calls the listener when the handler is told to stop; at once when it was already."""
        with self._lock:
            if self.reason is None:
                self._told.append(listener)
                return
        listener()

    def tell(self, reason: str) -> None:
        """Tells the handler to stop. A lost lease outweighs every other reason, else the first one stays."""
        with self._lock:
            first = self.reason is None
            if first or reason == CancelReason.LEASE_LOST:
                self.reason = reason
            listeners, self._told = self._told, []
        if first:
            for listener in listeners:
                listener()

    def settle(self, sent: float, item: Optional[Mapping[str, Any]]) -> None:
        """Takes in what was answered to a renewal that was sent at this moment; a refusal ends this lease and no other."""
        if item is None or ("code" in item and item.get("retryable")):
            self.unanswered()
        elif "code" in item:
            self.refused()
        else:
            self.renewed(sent, item)

    def renewed(self, sent: float, answer: Mapping[str, Any]) -> None:
        """Takes in an acknowledged renewal that was sent at this moment."""
        self.in_flight = False
        self.failures = 0
        self._acknowledged = max(self._acknowledged, sent)
        self.due = sent + _third(self.ttl_s)
        if answer.get("cancel_requested"):
            self.tell(CancelReason.CANCEL_REQUESTED)
        elif answer.get("yield_requested"):
            self.tell(CancelReason.YIELD_REQUESTED)

    def refused(self) -> None:
        """The engine says that the lease is over."""
        self.in_flight = False
        self.tell(CancelReason.LEASE_LOST)

    def unanswered(self) -> None:
        """A renewal failed; the next one comes soon."""
        self.in_flight = False
        self.failures += 1
        self.due = self._clock() + self.ttl_s / 12 * random.uniform(0.9, 1.0)


class LeaseBook:
    """All leases of one worker. It decides what is due; it sends nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._leases: Dict[str, Lease] = {}

    def add(self, lease: Lease) -> None:
        """From now on it is renewed."""
        self._leases[lease.task.lease_id] = lease

    def remove(self, lease: Lease) -> None:
        """From now on it is not."""
        self._leases.pop(lease.task.lease_id, None)

    def all(self) -> List[Lease]:
        """Every lease that is renewed."""
        return list(self._leases.values())

    def renew_soon(self) -> None:
        """Asks the engine about every lease, whatever is due: it may want some of them back."""
        now = self._clock()
        for lease in self._leases.values():
            lease.due = min(lease.due, now)

    def distrust(self) -> List[Lease]:
        """Tells and forgets every lease that was not renewed in time or is lost."""
        over = [lease for lease in self._leases.values() if not lease.trusted]
        for lease in over:
            lease.tell(CancelReason.LEASE_LOST)
            self.remove(lease)
        return over

    def take_due(self) -> List[Lease]:
        """The leases to renew now: when one is due, those that nearly are go with it."""
        now = self._clock()
        idle = [lease for lease in self._leases.values() if not lease.in_flight]
        if not any(lease.due <= now for lease in idle):
            return []
        batch = [lease for lease in idle if lease.due <= now + lease.ttl_s / 12]
        for lease in batch:
            lease.in_flight = True
        return batch

    def next_event(self) -> Optional[float]:
        """When a lease is due, or no longer to be trusted."""
        times = [
            lease.trusted_until if lease.in_flight else min(lease.trusted_until, lease.due)
            for lease in self._leases.values()
        ]
        return min(times) if times else None


def _third(ttl_s: float) -> float:
    # A tenth earlier at random, so that leases taken together drift apart over processes.
    return ttl_s / 3 * random.uniform(0.9, 1.0)
