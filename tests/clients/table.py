"""The table of `run switches`: table.py LINES REFUSED VERSIONS. Each line is `CLIENT took|broke FROM TO …`."""

import collections
import sys

lines, refused, versions = ([line.split() for line in open(name)] for name in sys.argv[1:])
kinds = [f"{family}-{kind}" for family in ("chat", "responses", "messages") for kind in ("readable", "sealed")]
clients = sorted({line[0] for line in lines})
ended = collections.Counter((line[2], line[3], line[1]) for line in lines)
packages = {line[0]: f"`{line[1]}` {line[2]}" for line in versions if line}
names = sorted({packages["-".join(client.split("-")[:2])] for client in clients})

print(f"""# Tool loops that move between models, by the vendors' own libraries

Each loop is five requests: the model of the row, the model of the column, and again, with one or two calls in each answer but the
last. The client sends back what it got (`input += output`) and the results. Each cell counts the loops that came to their end with
every call and result intact, of {len(clients)} clients
({", ".join(clients)}), whole and streamed. Written by
`tests/clients/run switches` with {", ".join(names)}.

| from, to | {" | ".join(kinds)} |
|---|{"---|" * len(kinds)}""")
for one in kinds:
    cells = [f"{ended[one, other, 'took']} of {ended[one, other, 'took'] + ended[one, other, 'broke']}" for other in kinds]
    print(f"| {one} | {' | '.join(cells)} |")
print(f"""
The vendors (`tests/clients/vendors.py` with the rules of `tests/doubles/`) refused {len(refused)} of these requests, all because of another
vendor's sealed thinking; the gateway repeated each without it, so no client saw a refusal.

What a library adds to an answer is not always what its vendor takes back:

| library, call | adds | sent back by `input += output` |
|---|---|---|
| openai (Python) `responses.stream`, `responses.parse` | `parsed` to texts, `parsed_arguments` to calls | left out by the library while its own objects are kept (`__api_exclude__`), sent after `model_dump()` |
| openai (Node) `responses.stream`, `responses.parse` | the same, and `output_parsed` to the answer | sent; OpenAI refuses `parsed`, with or without a gateway |
| both, `responses.create` with `stream` | nothing | what was answered |

So the loops above read their streams with `responses.create`.""")
