# Generated from ../aio by tools/blocking.py; change it there.
"""The client and the context of a task in blocking code."""
