"""Something to call over HTTP, in a thread of its own."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

TOKENS = {role: f"token of {role}" for role in ("send", "see", "acknowledge", "edit")}


class Request(NamedTuple):
    path: str
    headers: dict
    body: bytes


class Receiver:
    """Answers every post with a status, and stores it. ``refuses`` selects the bodies that are answered
    400, with that text; all may be changed meanwhile."""

    def __init__(self, status=200, headers=None, refuses=None):
        self.requests: list[Request] = []
        self.status, self.headers, self.refuses = status, headers or {}, refuses
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests.append(
                    Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                )
                refusal = (receiver.refuses(body) if receiver.refuses else "") or ""
                self.send_response(400 if refusal else receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(refusal.encode())))
                self.end_headers()
                self.wfile.write(refusal.encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
