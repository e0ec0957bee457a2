"""CPU time that LiteLLM takes to turn one streamed chat answer into native events: pip install litellm==1.106.2, then run this."""

import os
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from litellm.llms.anthropic.pass_through.adapters.streaming_iterator import AnthropicStreamWrapper  # noqa: E402
from litellm.types.utils import Delta, ModelResponseStream, StreamingChoices  # noqa: E402

DELTAS = 500


def chunks():
    for at in range(DELTAS):
        delta = Delta(role="assistant" if at == 0 else None, content=" some words of text")
        yield ModelResponseStream(choices=[StreamingChoices(index=0, delta=delta, finish_reason=None)], model="model")
    yield ModelResponseStream(choices=[StreamingChoices(index=0, delta=Delta(), finish_reason="stop")], model="model")


best = None
for _ in range(7):
    made = list(chunks())
    began = time.process_time()
    events = sum(1 for _ in AnthropicStreamWrapper(completion_stream=iter(made), model="model"))
    took = (time.process_time() - began) / DELTAS * 1e6
    best = took if best is None else min(best, took)
print(f"{best:.1f} µs a text delta, of CPU, best of 7, {events} events; parsing the upstream's JSON and writing frames are not counted")
