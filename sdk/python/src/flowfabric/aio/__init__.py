"""The client and the context of a task in asyncio; `flowfabric.blocking` is generated from it by `tools/blocking.py`."""
