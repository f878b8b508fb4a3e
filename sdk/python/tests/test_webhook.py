"""Verification of webhooks by their receiver."""

from __future__ import annotations

import unittest

import server  # noqa: F401 - finds the package

from flowfabric.webhook import TOLERANCE_MS, InvalidWebhook, verify

# The same values as in the tests of the server's keys, because both must agree.
KEY = "whk_47d5cdd65e444fdad476e5a7347e197d41d770473035a1ae7c3c5e0e80536221"
HEADERS = {
    "FF-Webhook-Id": "0192d5f2-6f3c-8a70-a3f1-0242ac120002",
    "FF-Webhook-Timestamp": "1700000000000",
    "FF-Webhook-Signature": "v1=bdb47637612b3271dae508d4cdd14f4c5a8d2fca1d7f1963c918010b725b41a7",
}
BODY = b'{"a":1}'
SENT = 1_700_000_000_000


class Webhooks(unittest.TestCase):
    def test_what_the_server_signed_is_accepted(self) -> None:
        for headers in (HEADERS, {name.lower(): value for name, value in HEADERS.items()}):
            self.assertEqual(verify(KEY, headers, BODY, SENT + 5), HEADERS["FF-Webhook-Id"])
        several = "v1=00, " + HEADERS["FF-Webhook-Signature"]
        self.assertEqual(verify(KEY, {**HEADERS, "FF-Webhook-Signature": several}, BODY, SENT), HEADERS["FF-Webhook-Id"])

    def test_nothing_else_is(self) -> None:
        wrong = [
            (KEY + "0", HEADERS, BODY, SENT),
            (KEY, HEADERS, b"{}", SENT),
            (KEY, {**HEADERS, "FF-Webhook-Id": "other"}, BODY, SENT),
            (KEY, {**HEADERS, "FF-Webhook-Timestamp": str(SENT + 1)}, BODY, SENT),
            (KEY, {**HEADERS, "FF-Webhook-Signature": "v1=é"}, BODY, SENT),
            (KEY, {}, BODY, SENT),
            (KEY, HEADERS, BODY, SENT + TOLERANCE_MS + 1),
            (KEY, HEADERS, BODY, SENT - TOLERANCE_MS - 1),
        ]
        for key, headers, body, now in wrong:
            with self.assertRaises(InvalidWebhook):
                verify(key, headers, body, now)


if __name__ == "__main__":
    unittest.main()
