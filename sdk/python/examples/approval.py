"""An expense that waits for two of three people, without holding a worker: `python approval.py`."""

import threading
from typing import Any, Dict

from flowfabric import Client, Context, Token, Worker, count

client = Client()
worker = Worker(lanes=["expenses"], slots=2)
mailbox: Dict[str, Any] = {}
sent = threading.Event()


def mail(waitpoint_id: str, tokens: Dict[Any, Token]) -> None:
    """Stands for the delivery of each token to its approver."""
    mailbox.update({"waitpoint_id": waitpoint_id, "tokens": tokens})
    sent.set()


@worker.task("expense")
def expense(amount: int, ctx: Context) -> str:
    if ctx.resume_of("board") is None:
        opened = ctx.create_pending_waitpoint("board", approvers=["ada", "bob", "eve"], expires_in_ms=86_400_000)
        mail(opened.waitpoint_id, dict(opened.tokens))
    # The run ends here; the handler is called again after two approvals.
    signals = ctx.wait_for_signals(
        condition=count(2, "approvers", of="yes"), reason="waiting_for_approval", timeout_ms=86_400_000, step="board"
    )
    return f"{amount} approved by {', '.join(sorted(str(one.approver) for one in signals))}"


def main() -> None:
    with worker.running():
        id = client.submit("expense", 120, lane="expenses").execution_id
        sent.wait()
        for who in ("bob", "eve"):
            client.waitpoints.signal(mailbox["waitpoint_id"], id, "yes", mailbox["tokens"][who], source="mail")
        print(client.result(id, wait_s=None).value)


if __name__ == "__main__":
    main()
