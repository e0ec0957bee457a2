"""A proxy between gateway and provider that writes down, for each request, what the provider itself counted.

Usage: record.py UPSTREAM_URL FILE [KEY]. Prints its port; writes one JSON line for each answer. It knows nothing of the gateway, so its
numbers are a second opinion on the journal's. It has a largest answer and, for native messages, a stop sequence of its own,
because a random model never comes to an end. KEY is the provider's, where that looks like a customer's.
"""

import http.client
import http.server
import json
import sys
import threading
from urllib.parse import urlsplit

UPSTREAM = urlsplit(sys.argv[1])
OWN = sys.argv[3] if len(sys.argv) > 3 else "none"
LOCK = threading.Lock()
LARGEST_ANSWER = 48
STOP = ["p"]
HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


def limited(path, body):
    """The request with an output limit of at most LARGEST_ANSWER."""
    request = json.loads(body)
    name = "max_output_tokens" if path.endswith("/responses") else "max_tokens"
    asked = [request.pop(field, None) for field in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
    request[name] = min([LARGEST_ANSWER, *filter(None, asked)])
    if path.endswith("/messages"):
        request["stop_sequences"] = STOP
    return json.dumps(request).encode()


def usages(body, streamed):
    """Every usage object of an answer, in order."""
    texts = [body]
    if streamed:
        texts = [line[5:] for line in body.split(b"\n") if line.startswith(b"data:")]
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        for holder in (value, value.get("message") or {}, value.get("response") or {}):
            if isinstance(holder.get("usage"), dict):
                yield holder["usage"]


def counted(body, streamed):
    """Disjoint counts; a later usage object wins, and zero never replaces a positive count."""
    seen = {}
    for usage in usages(body, streamed):
        for name, value in usage.items():
            if isinstance(value, dict):
                value = value.get("cached_tokens", 0)
                name += ".cached"
            if isinstance(value, int) and (value or name not in seen):
                seen[name] = value
    if "prompt_tokens" in seen:
        read = seen.get("prompt_tokens_details.cached", 0)
        return {"input": seen["prompt_tokens"] - read, "cache_read": read, "output": seen.get("completion_tokens", 0)}
    if "input_tokens" not in seen:
        return None
    if "cache_read_input_tokens" in seen:
        return {"input": seen["input_tokens"], "cache_read": seen["cache_read_input_tokens"], "output": seen["output_tokens"]}
    read = seen.get("input_tokens_details.cached", 0)
    return {"input": seen["input_tokens"] - read, "cache_read": read, "output": seen["output_tokens"]}


class Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = body if self.path.endswith(("/count_tokens", "/embeddings")) else limited(self.path, body)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        assert not any("sk-fb-" in value and OWN not in value for value in headers.values()), "a customer's key went upstream"
        upstream = http.client.HTTPConnection(UPSTREAM.hostname, UPSTREAM.port, timeout=1800)
        upstream.request("POST", self.path, body, headers)
        answer = upstream.getresponse()
        kind = answer.getheader("content-type", "")
        self.send_response(answer.status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        whole = b""
        try:
            while piece := answer.read1(65536):
                whole += piece
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            complete = True
        except OSError:
            complete = False
        finally:
            upstream.close()
        streamed = "event-stream" in kind
        line = {"path": self.path, "status": answer.status, "complete": complete, "usage": counted(whole, streamed)}
        with LOCK, open(sys.argv[2], "a") as out:
            print(json.dumps(line), file=out)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
