"""A worker that greets: `python hello_worker.py`, then `ff submit --kind greet --input '{"name": "Ada"}'`."""

from dataclasses import dataclass

from flowfabric import Context, Worker

worker = Worker(slots=4)  # FF_URL and FF_TOKEN, else the server on this machine


@dataclass
class Greeting:
    name: str
    times: int = 1


@worker.task("greet")
def greet(greeting: Greeting, ctx: Context) -> str:
    for n in range(greeting.times):
        ctx.progress(100 * n // greeting.times, f"greeting {greeting.name}")
        ctx.frame("said", f"Hello, {greeting.name}!")
    return f"Hello, {greeting.name}!"


if __name__ == "__main__":
    worker.run()
