"""A proxy in front of the gateway that tells it of another program: rename.py GATEWAY USER_AGENT. Prints its port."""

import http.client
import http.server
import sys
from urllib.parse import urlsplit

GATEWAY = urlsplit(sys.argv[1])
OURS = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "user-agent"}


class Renamer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OURS}
        gateway = http.client.HTTPConnection(GATEWAY.hostname, GATEWAY.port, timeout=600)
        gateway.request(self.command, self.path, body, headers | {"user-agent": sys.argv[2]})
        answer = gateway.getresponse()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OURS:
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        # One that breaks off here breaks off for the program, too.
        while piece := answer.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()

    do_GET = do_POST = do_HEAD = pass_on

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Renamer)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
