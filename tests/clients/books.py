"""Checks one key's journal after a scenario: exact charges, exact balance, and the provider's own usage.

Usage: books.py FAREBOX KEY CATALOG RECORDED NAME SECONDS. All arithmetic is decimal; prices come from the catalog, not from the
journal's lines.
"""

import json
import os
import subprocess
import sys
import tomllib
from decimal import Decimal

farebox, key, catalog, recorded, name, seconds = sys.argv[1:]
CLASSES = {"input": "input", "cache_read": "cache_read", "cache_write": "cache_write", "cache_write_1h": "cache_write_1h",
           "output": "output", "reasoning": "output"}


def ask(*arguments):
    return json.loads(subprocess.run([farebox, *arguments, "--json"], check=True, capture_output=True).stdout)


def cost(entry, price):
    usage = entry["usage"]
    tokens = sum(Decimal(usage[count]) * Decimal(price.get(rate, 0)) / 1_000_000 for count, rate in CLASSES.items())
    # A stream that the provider broke costs its delivered words: neither its input nor the price of a request.
    return tokens if entry["end_reason"] == "upstream_broken" else tokens + Decimal(price.get("per_request", 0))


with open(catalog, "rb") as file:
    prices = {model["slug"]: model["price"] for model in tomllib.load(file)["model"]}

entries = ask("ledger", "entries", "--key", key)["entries"]
charges = [entry for entry in entries if entry["kind"] == "charge"]
paid = [entry for entry in charges if Decimal(entry["amount"]) != 0]
for entry in paid:
    assert entry["evidence"] in ("provider", "local"), entry
    expected = cost(entry, prices[entry["slug"]])
    assert -Decimal(entry["amount"]) == expected, f"charged {entry['amount']}, usage times price is {expected}: {entry}"

credit = sum((Decimal(entry["amount"]) for entry in entries if entry["kind"] != "charge"), Decimal(0))
spent = sum((-Decimal(entry["amount"]) for entry in paid), Decimal(0))
state = ask("keys", "show", key)
assert Decimal(state["balance"]) == credit - spent, f"balance {state['balance']}, credit {credit} − spent {spent}"
assert Decimal(state["held"]) == 0, f"{state['held']} is still held"

# Scenarios run one after the other: the last so many finished answers of the provider belong to this key.
real = [entry for entry in paid if entry["target"].startswith("real") and entry["evidence"] == "provider"]
if real:
    with open(recorded) as lines:
        answers = [json.loads(line) for line in lines]
    counted = [line["usage"] for line in answers if line["usage"] and line["path"].split("?")[0].rsplit("/")[-1] != "count_tokens"]
    ours = sorted((e["usage"]["input"], e["usage"]["cache_read"], e["usage"]["output"] + e["usage"]["reasoning"]) for e in real)
    theirs = sorted((u["input"], u["cache_read"], u["output"]) for u in counted[-len(real):])
    assert ours == theirs, f"the journal has {ours}, the provider counted {theirs}"

by = {evidence: sum(entry["evidence"] == evidence for entry in paid) for evidence in ("provider", "local")}
usages = [entry["usage"] for entry in paid]
tokens = sum(sum(u[c] for c in CLASSES if c not in ("output", "reasoning")) for u in usages), sum(u["output"] for u in usages)
print(f"   {name}: {len(charges)} requests in {seconds} s, {len(paid)} charged ({by['provider']} by the provider's count"
      f"{', equal to the recorded one' if real else ''}; {by['local']} by ours), {tokens[0]} in, {tokens[1]} out, {spent} USD")
if os.environ.get("AT_LEAST") and len(paid) < int(os.environ["AT_LEAST"]):
    sys.exit(f"{name}: {len(paid)} charges, expected at least {os.environ['AT_LEAST']}")
