"""The address of the server, and the client's credential."""

from __future__ import annotations

import os
import ssl
from typing import Dict, Mapping, Optional
from urllib.parse import quote, urlencode, urlsplit

from ..errors import ConfigError

#: The default address of a server.
DEFAULT_URL = "http://127.0.0.1:7433"
USER_AGENT = "flowfabric-python/0.1"


class Origin:
    """The address of a server, and the credential for it."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.url = url or os.environ.get("FF_URL") or DEFAULT_URL
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url must be http://HOST:PORT or https://HOST:PORT, got {self.url!r}")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ConfigError(f"url must not carry credentials, a query or a fragment, got {parts.hostname!r} with some")
        try:
            # Reading the port validates it.
            parts.port
        except ValueError as error:
            raise ConfigError(f"url must be http://HOST:PORT or https://HOST:PORT: {error}") from error
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.ssl: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self.ssl = ssl_context or ssl.create_default_context()
        self._token = token if token is not None else os.environ.get("FF_TOKEN")
        if self._token is not None and not (self._token.isascii() and self._token.isprintable()):
            raise ConfigError("token must be printable ASCII")

    def __repr__(self) -> str:
        return f"Origin({self.url!r})"

    def target(self, path: str, query: Optional[Mapping[str, object]] = None) -> str:
        """The URL of a request. Parameters that are None are left out."""
        named = {name: value for name, value in (query or {}).items() if value is not None}
        return self._base + path + (f"?{urlencode(named)}" if named else "")

    def headers(self, extra: Mapping[str, str], has_body: bool) -> Dict[str, str]:
        """The headers of a request. Its own headers override the others."""
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if has_body:
            headers["Content-Type"] = "application/json"
        headers.update(extra)
        for name, value in headers.items():
            # A request with such a header can never be sent.
            if not (value.isascii() and value.isprintable()):
                raise ConfigError(f"the header {name} must be printable ASCII")
        return headers


def segment(text: str) -> str:
    """One part of a path."""
    quoted = quote(str(text), safe="")
    # A part with only dots would change the path.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")
