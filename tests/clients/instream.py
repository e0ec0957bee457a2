"""A provider that begins to answer and then says, in the stream, that the request was at fault; without a stream it says so at
once. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
ERRORS = {
    "fails-context": ("context_length_exceeded", "Your input exceeds the context window of this model."),
    "fails-prompt": ("invalid_prompt", "Invalid prompt: it was flagged as potentially violating our usage policy."),
    "fails-tool": ("tool_use_failed", "Failed to call a function. Please adjust your prompt."),
}


def responses(model):
    code, message = ERRORS[model]
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": model, "output": []}
    yield "response.created", {"type": "response.created", "sequence_number": 0, "response": response}
    failed = {**response, "status": "failed", "error": {"code": code, "message": message}}
    yield "response.failed", {"type": "response.failed", "sequence_number": 1, "response": failed}


def messages(model):
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": usage}}
    yield "error", {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}


def chat(model):
    code, message = ERRORS[model]
    choice = {"index": 0, "delta": {"role": "assistant", "content": "One moment"}, "finish_reason": None}
    yield None, {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    yield None, {"error": {"type": "invalid_request_error", "code": code, "message": message}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        speak = {"responses": responses, "messages": messages, "completions": chat}[self.path.split("?")[0].rsplit("/", 1)[1]]
        if not asked.get("stream"):
            return self.refuse()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event, data in speak(asked["model"]):
            head = f"event: {event}\n" if event else ""
            self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
        self.close_connection = True

    def refuse(self):
        body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
