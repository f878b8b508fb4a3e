"""A small HTTP/1.1 layer on the standard library: keep-alive connections, timeouts, bearer tokens, safe repetition."""
