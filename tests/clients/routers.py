"""The Python library of a model router: its strict models read our lists, the account and answers, whole and streamed."""

import sys

from openrouter import OpenRouter

base, secret, *slugs = sys.argv[1:]
with OpenRouter(server_url=f"{base}/v1", api_key=secret) as client:
    listed = {model.id for model in client.models.list().result.data}
    assert set(slugs) <= listed, listed
    account = client.api_keys.get_current_key_metadata().data
    assert account.limit_remaining > 0 and account.usage_daily == account.usage, account
    assert client.credits.get_credits().data.total_credits > 0
    for slug in slugs:
        asked = {"model": slug, "messages": [{"role": "user", "content": "Say hello"}], "max_completion_tokens": 100}
        whole = client.chat.send(**asked)
        assert whole.choices[0].message.content and whole.usage.completion_tokens > 0, whole
        words, usage = "", None
        for chunk in client.chat.send(**asked, stream=True, stream_options={"include_usage": True}):
            words += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
        assert words and usage.completion_tokens > 0, (words, usage)
        print(slug, "answered")
