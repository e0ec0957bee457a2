"""A server on loopback that refuses every model request with one answer, to see how long a client insists.

Usage: refusing.py ANSWER FILE. Prints its port; writes one line for each refused request: its time, and its `User-Agent`. The answers
are in ANSWERS.
"""

import http.server
import json
import sys
import time

TEXT = "out of balance: this request needs up to 0.004200 USD, 0.00 USD is available (0.00 USD is held); top up this key"
QUOTA = {"type": "insufficient_quota", "code": "insufficient_quota"}
NO_RETRY = {"x-should-retry": "false"}
EXPOSURE = {"type": "rate_limit_exceeded", "code": "exposure_limit"}
EXPOSED = "exposure limit: too many requests of this key in the last 24 hours were left early or broke, and were paid only in part; " \
          "it is served again in about 7 minutes; read answers to their end, or ask the seller of this key"
RESET = TEXT + " (the quota of this key is exceeded and will reset with a top-up)"


def body(**error):
    return {"type": "error", "error": {"param": None, "message": TEXT, **error}, "request_id": "req_refused"}


# Name → status, headers, body.
ANSWERS = {
    "bare": (429, {}, body(**QUOTA)),
    "no-retry": (429, NO_RETRY, body(**QUOTA)),
    "ms": (429, {**NO_RETRY, "retry-after-ms": "250"}, body(**QUOTA)),
    "words": (429, NO_RETRY, body(**QUOTA, message=RESET)),
    "ms-words": (429, {**NO_RETRY, "retry-after-ms": "250"}, body(**QUOTA, message=RESET)),
    "after-1": (429, {**NO_RETRY, "retry-after": "1"}, body(**QUOTA)),
    "after-3600": (429, {**NO_RETRY, "retry-after": "3600"}, body(**QUOTA)),
    "billing": (429, NO_RETRY, body(type="billing_error", code=None)),
    # As the stop of a key by its exposure, or by a cap, in several words.
    "exposure": (429, NO_RETRY, body(**EXPOSURE, message=EXPOSED)),
    "exposure-ms": (429, {**NO_RETRY, "retry-after-ms": "250"}, body(**EXPOSURE, message=EXPOSED)),
    "exposure-quota": (429, {**NO_RETRY, "retry-after-ms": "250"}, body(type="insufficient_quota", code="exposure_limit", message=EXPOSED)),
    "exposure-403": (403, NO_RETRY, body(type="invalid_request_error", code="exposure_limit", message=EXPOSED)),
    "400": (400, NO_RETRY, body(**QUOTA)),
    "402": (402, NO_RETRY, body(**QUOTA)),
    "403": (403, NO_RETRY, body(**QUOTA)),
}


class Refusing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, headers, document):
        text = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if "count_tokens" not in self.path:
            with open(sys.argv[2], "a") as out:
                print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), self.headers.get("user-agent", ""), file=out, flush=True)
        self.answer(*ANSWERS[sys.argv[1]])

    def do_GET(self):
        self.answer(200, {}, {"object": "list", "data": [{"id": "gpt-sim", "object": "model"}], "models": [{"slug": "gpt-sim"}]})

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
