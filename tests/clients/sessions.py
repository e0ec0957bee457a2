"""The page of a run of sessions: sessions.py TITLE WORK VERSIONS, with the gateway's log on stdin.

WORK/sessions has a line `NAME KEY TURNS` for each session, WORK/refused one for each refusal of a vendor.
"""

import collections
import decimal
import re
import sys

title, work, versions = sys.argv[1:]
sessions = [line.split() for line in open(f"{work}/sessions")]
refused = [line.strip() for line in open(f"{work}/refused")]
packages = {line.split()[0]: f"`{line.split()[1]}` {line.split()[2]}" for line in open(versions) if line.strip()}
FIELD = re.compile(r"(\w+)=(\S+)")

served, tokens, slugs = collections.Counter(), collections.defaultdict(lambda: [0, 0, 0, decimal.Decimal(0)]), []
for line in sys.stdin:
    said = dict(FIELD.findall(line))
    name = next((name for name, key, _ in sessions if key == said.get("key")), None)
    if name is None or "slug" not in said or said.get("status") != "200":
        continue
    if said["slug"] not in slugs:
        slugs.append(said["slug"])
    served[said["slug"], name] += 1
    made = tokens[name]
    made[0] += 1
    made[1] += sum(int(said[count]) for count in ("input", "cache_read", "cache_write"))
    made[2] += int(said["output"])
    made[3] += decimal.Decimal(said["charge"])

names = [name for name, _, _ in sessions]
rows = [[f"`{slug}`", *(str(served[slug, name] or "–") for name in names)] for slug in slugs]
rows.append(["turns", *(turns for _, _, turns in sessions)])
rows.append(["requests", *(str(tokens[name][0]) for name in names)])
rows.append(["input tokens", *(f"{tokens[name][1]:,}" for name in names)])
rows.append(["output tokens", *(f"{tokens[name][2]:,}" for name in names)])
rows.append(["charged, USD", *(f"{tokens[name][3]:f}" for name in names)])
clients = sorted({packages["opencode" if name.startswith("opencode") else name] for name in names})

print(f"""# {title}

Each column is one session of a real program, which goes on from slug to slug; each cell counts the requests that were served there.
Programs: {", ".join(clients)}. Each charge was compared with usage times price
(`tests/clients/books.py`).

| slug | {" | ".join(names)} |
|---|{"---|" * len(names)}""")
for row in rows:
    print(f"| {' | '.join(row)} |")
SEALS = re.compile(r"Invalid .signature. in .thinking. block|encrypted content could not be verified|Item with id '.*' not found")
repeated = [line for line in refused if SEALS.search(line)]
told = [line for line in refused if not SEALS.search(line)]
for what, lines in (("repeated without another vendor's sealed thinking", repeated), ("told to the program", told)):
    if lines:
        print(f"\nRefused by a vendor, and {what}:\n")
        kinds = collections.Counter(re.sub(r"\b(rs|fc|msg|seal|call|toolu)_\S+?(?=[' ]|$)", r"\1_…", line) for line in lines)
        print("\n".join(f"- {count} × `{line}`" for line, count in kinds.most_common()))
