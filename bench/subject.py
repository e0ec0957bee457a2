"""What the scripts here serve: one model, one provider, and an answer of so many words."""

import json

CATALOG = """[[model]]
model = "Bench"
slug = "bench"
provider = "Bench"
best_path = "chat"
best_environments = ["benchmarks"]
price = { input = "1", output = "2" }
capabilities = ["streaming"]
limits = { context = 200_000, max_output = 64_000 }
"""
ROUTES = """[provider.bench]
base_url = "http://127.0.0.1:%d/v1"
speaks = ["chat"]

[[route]]
slug = "bench"
targets = [ { provider = "bench", model = "bench-1" } ]
"""


def answer(words, tokens):
    """A whole chat answer."""
    return whole({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": tokens, "total_tokens": 200 + tokens},
    })


def whole(answer):
    """It as an HTTP answer."""
    body = json.dumps(answer).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
