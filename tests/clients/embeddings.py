"""Embeddings by a library: embeddings.py LIBRARY, with BASE, KEY and SLUG in the environment, and SIMULATED where that makes them."""

import os
import sys

base, key, slug, simulated = (os.environ[name] for name in ("BASE", "KEY", "SLUG", "SIMULATED"))
base += "/v1"
TEXTS = ["The key is in the cellar.", "Die Tür ist offen, „sagt“ er.", "日本語のテキスト", 'fn main() {\n\tprintln!("x");\n}']


def openai():
    from openai import BadRequestError, OpenAI

    client = OpenAI(base_url=base, api_key=key, max_retries=0)
    # One text, some, the most; one list of tokens, some; packed, which is its default, and as numbers; and fewer numbers.
    asked = [{"input": TEXTS[0]}, {"input": TEXTS}, {"input": ["word"] * 2048}, {"input": [5, 6, 7]}, {"input": [[5, 6], [7]]},
             {"input": TEXTS, "encoding_format": "float"}, {"input": TEXTS, "encoding_format": "base64"}]
    if simulated:
        asked.append({"input": TEXTS, "dimensions": 3})
    for one in asked:
        answer = client.embeddings.create(model=slug, **one)
        given = one["input"]
        count = len(given) if isinstance(given, list) and not isinstance(given[0], int) else 1
        assert answer.model == slug and [each.index for each in answer.data] == list(range(count)), answer
        sizes = {len(each.embedding) for each in answer.data}
        assert len(sizes) == 1 and sizes.pop() > 2, answer
        assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0, answer.usage
    assert not simulated or len(answer.data[0].embedding) == 3
    for wrong in ("", [], ["a", ""], ["a"] * 2049):
        try:
            client.embeddings.create(model=slug, input=wrong)
            raise AssertionError(f"{str(wrong)[:40]} was served")
        except BadRequestError as refused:
            assert refused.body["message"], refused


def langchain():
    from langchain_openai import OpenAIEmbeddings

    # By itself it sends tokens, cut where a text is too long; else the texts.
    for tokens in (True, False) if simulated else (False,):
        model = OpenAIEmbeddings(base_url=base, api_key=key, model=slug, check_embedding_ctx_length=tokens, chunk_size=3)
        vectors = model.embed_documents(TEXTS)
        assert len(vectors) == len(TEXTS) and len({len(vector) for vector in vectors}) == 1, vectors
        assert len(model.embed_query(TEXTS[0])) == len(vectors[0])
    if simulated:
        long = OpenAIEmbeddings(base_url=base, api_key=key, model=slug, embedding_ctx_length=100)
        assert len(long.embed_documents(["word " * 250, TEXTS[0]])) == 2
    else:
        assert len(model.embed_documents(["word"] * 2)) == 2


def llama_index():
    from llama_index.embeddings.openai import OpenAIEmbedding

    model = OpenAIEmbedding(api_base=base, api_key=key, model=slug, embed_batch_size=100, max_retries=0)
    assert len(model.get_query_embedding(TEXTS[0])) == len(model.get_text_embedding(TEXTS[1])) > 2
    vectors = model.get_text_embedding_batch([f"{text} {number}" for number in range(60) for text in TEXTS])
    assert len(vectors) == 240, len(vectors)
    if simulated:
        small = OpenAIEmbedding(api_base=base, api_key=key, model=slug, dimensions=3)
        assert len(small.get_text_embedding(TEXTS[0])) == 3


{"openai-python": openai, "langchain": langchain, "llama-index": llama_index}[sys.argv[1]]()
print("done")
