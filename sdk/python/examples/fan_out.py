"""A document is split, children count the words of its parts in parallel, and the parent adds them up: `python fan_out.py`."""

import asyncio
from typing import List

from flowfabric import AsyncClient, AsyncContext, Worker

worker = Worker(lanes=["documents"], slots=8)


@worker.task("count-document")
async def count_document(pages: List[str], ctx: AsyncContext) -> int:
    await ctx.spawn([{"kind": "count-page", "key": f"page-{n}", "input": page} for n, page in enumerate(pages)])
    # The parent holds no worker while the children run; its handler is called again when all have ended.
    children = await ctx.wait_children()
    return sum(child.result for child in children)


@worker.task("count-page")
async def count_page(page: str) -> int:
    return len(page.split())


async def main() -> None:
    working = asyncio.ensure_future(worker.run_async())
    async with AsyncClient() as client:
        pages = ["it was the best of times", "it was the worst of times", "call me Ishmael"]
        print(await client.run("count-document", pages, lane="documents"), "words")
    worker.stop()
    await working


if __name__ == "__main__":
    asyncio.run(main())
