"""Keeps the requests of schemathesis bounded: no long poll waits, and no stream is endless."""

import os

import requests
import schemathesis

URL = os.environ["FF_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['FF_TOKEN']}"}
WAIT_MS = 20


def ended_execution():
    """An execution whose stream ends at once."""
    made = requests.post(f"{URL}/v1/executions", json={"kind": "ended"}, headers=HEADERS, timeout=30)
    made.raise_for_status()
    execution_id = made.json()["execution_id"]
    requests.post(f"{URL}/v1/executions/{execution_id}/cancel", json={}, headers=HEADERS, timeout=30).raise_for_status()
    return execution_id


ENDED = ended_execution()


def bounded(value):
    """Shortens a valid wait; an invalid one stays invalid."""
    try:
        return WAIT_MS if WAIT_MS < int(value) <= 30_000 else value
    except (TypeError, ValueError):
        return value


@schemathesis.hook
def before_call(context, case, kwargs):
    path, query, body = case.operation.path, case.query, case.body
    for name in ("wait_ms", "block_ms"):
        if query and name in query:
            query[name] = bounded(query[name])
        if isinstance(body, dict) and type(body.get(name)) is int:
            body[name] = bounded(body[name])
    if isinstance(body, dict) and isinstance(body.get("claim"), dict) and type(body["claim"].get("wait_ms")) is int:
        body["claim"]["wait_ms"] = bounded(body["claim"]["wait_ms"])
    if path == "/v1/flows/{flow}/cancel" and isinstance(body, dict) and body.get("wait") is True:
        body["wait"] = False
    if path == "/v1/events" and (not query or query.get("follow", "true") in ("true", True)):
        case.query = {**(query or {}), "follow": "false"}
    if path == "/v1/executions/{id}/stream" and case.path_parameters:
        known = requests.get(f"{URL}/v1/executions/{case.path_parameters.get('id')}", headers=HEADERS, timeout=30)
        if known.status_code == 200:
            case.path_parameters["id"] = ENDED
