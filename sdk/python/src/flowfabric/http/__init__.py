"""Requests and responses, independent of how they are sent."""
