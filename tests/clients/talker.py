#!/usr/bin/env python3
"""A responses service, which knows no stop strings and refuses them: talker.py PORT_FILE LEFT_FILE

It says the lines of a play, whose name is the model's, and goes on as models do: it makes up what others would say next. Who does
not leave hears a hundred words more. LEFT_FILE gets a line for each answer: the model, and whether it was left before its end.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACTION = [{"tag": "a", "name": "CalculatorTool", "path": "calculate", "input": {"expression": "6 * 7"}}]
PLAYS = {
    "smolagents": ["Thought: I multiply.\n<code>\nprint(6 * 7)\n</code>\nObservation: 41, I think",
                   "Thought: It is 42.\n<code>\nfinal_answer(42)\n</code>\nObservation: 41"],
    "griptape": [f"Thought: I multiply.\nActions: {json.dumps(ACTION)}\n<|Response|>: 41, I think", "Answer: 42"],
    "lm-eval": [" 42\n\nQuestion: What is seven times seven?"],
}


class Talker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/responses") or "stop" in body or body.get("stream") is not True:
            return self.refuse("only streamed responses, without stop strings")
        lines = PLAYS[body["model"]]
        said = sum(item.get("role") == "assistant" for item in body["input"])
        text = lines[said % len(lines)]
        if not text.startswith("Answer"):
            text += " and on" * 100
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": text, "annotations": []}]}
        usage = {"input_tokens": 90, "output_tokens": 120, "total_tokens": 210, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        whole = {"id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "model": "m", "output": [message], "usage": usage}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
                  {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}}]
        events += [{"type": "response.output_text.delta", **place, "delta": text[at:at + 3]} for at in range(0, len(text), 3)]
        events += [{"type": "response.output_item.done", "output_index": 0, "item": message}, {"type": "response.completed", "response": whole}]
        left = "heard to its end"
        try:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.005)
        except OSError:
            left = "left"
        self.close_connection = True
        with open(sys.argv[2], "a") as file:
            file.write(f"{body['model']}: {left}\n")

    def refuse(self, why):
        data = json.dumps({"error": {"type": "invalid_request_error", "code": None, "message": why}}).encode()
        self.send_response(400)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Talker)
with open(sys.argv[1], "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
