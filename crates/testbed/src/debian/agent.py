"""An agent that answers its health check, and greets."""

import http.server
import json
import socket


class Handler(http.server.BaseHTTPRequestHandler):
    # One write per answer: a client that has read the status may close.
    wbufsize = -1

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, "application/json", json.dumps({"status": "HEALTHY"}))
        elif self.path == "/":
            self.answer(200, "text/plain", f"Hello from {socket.gethostname()}.\n")
        else:
            self.answer(404, "text/plain", "Not Found\n")

    def answer(self, status, content_type, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", 4088), Handler).serve_forever()
