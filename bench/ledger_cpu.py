#!/usr/bin/env python3
"""CPU of a gateway for a request, with its ledger in SQLite and in PostgreSQL, in turns.

FAREBOX=target/guard/farebox bench/ledger_cpu.py [CONNECTIONS [REQUESTS [ROUNDS]]] starts a private PostgreSQL (as nobody when it
runs as root) in TMPDIR, one gateway on each ledger, and a provider that answers at once. The server's CPU is printed beside: it is
another machine's in a fleet. Standard library only.
"""

import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from subject import CATALOG, ROUTES, answer

FAREBOX = os.path.abspath(os.environ.get("FAREBOX", "target/dist/farebox"))
CONNECTIONS, REQUESTS, ROUNDS = [int(value) for value in sys.argv[1:]] + [64, 5000, 3][len(sys.argv) - 1 :]
KEYS = 16
TICK = os.sysconf("SC_CLK_TCK")
ANSWER = answer("word " * 100, 100)
QUESTION = json.dumps({
    "model": "bench", "max_completion_tokens": 4096, "messages": [{"role": "user", "content": "and the next line " * 50}],
}).encode()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def cpu(pid):
    """CPU-seconds of a process and of everything that it started."""
    parents, used = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        used[int(name)] = sum(map(int, fields[11:15])) / TICK
    tree, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in tree} - tree
        tree, grown = tree | more, bool(more)
    return sum(used.get(member, 0) for member in tree)


async def message(reader):
    """One HTTP message with a length; its first line."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
    return head.split(b"\r\n", 1)[0]


async def provide(reader, writer):
    try:
        while True:
            await message(reader)
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def customer(port, key, count):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    request = head.encode() + b"content-length: %d\r\n\r\n" % len(QUESTION) + QUESTION
    for _ in range(count):
        writer.write(request)
        status = await message(reader)
        assert b" 200 " in status, status
    writer.close()


def postgres(folder):
    """Starts a server on a socket in the folder; its process and the ledger's address."""
    bin = sorted(os.listdir("/usr/lib/postgresql"))[-1]
    bin, data = f"/usr/lib/postgresql/{bin}/bin/", f"{folder}/data"
    ordinary = []
    if os.getuid() == 0:
        os.chown(folder, 65534, 65534)
        ordinary = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    subprocess.run([*ordinary, bin + "initdb", "--no-sync", "-A", "trust", "-U", "farebox", "-E", "UTF8", "-D", data], check=True, **quiet)
    settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "shared_buffers=128MB"]
    server = subprocess.Popen([*ordinary, bin + "postgres", "-D", data, *settings], **quiet)
    while subprocess.run([bin + "psql", "-h", folder, "-U", "farebox", "-d", "postgres", "-c", "CREATE DATABASE ledger"], **quiet).returncode:
        assert server.poll() is None
        time.sleep(0.1)
    return server, "postgres://farebox@" + folder.replace("/", "%2F") + "/ledger"


def serve(folder, name, ledger, provider):
    """A gateway with its keys."""
    place = f"{folder}/{name}"
    os.mkdir(place)
    open(f"{place}/catalog.toml", "w").write(CATALOG)
    open(f"{place}/routes.toml", "w").write(ROUTES % provider)
    common = {"cwd": place, "env": {"PATH": os.environ["PATH"], "FAREBOX_LEDGER": ledger, "FAREBOX_ALLOW_SINGLE": "true", "FAREBOX_LOG": "warn"}}
    keys = []
    for number in range(KEYS):
        create = [FAREBOX, "keys", "create", *([] if number else ["--new-ledger"]), "--label", "bench", "--balance", "100000", "--rate", "100000", "--reference", f"{number}", "--json"]
        keys.append(json.loads(subprocess.run(create, check=True, capture_output=True, **common).stdout)["secret"])
    port = free_port()
    listen = ["--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{free_port()}"]
    gateway = subprocess.Popen([FAREBOX, "serve", *listen], stderr=open(f"{place}/log", "w"), **common)
    while True:
        assert gateway.poll() is None, open(f"{place}/log").read()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return gateway, port, keys
        time.sleep(0.1)


async def main():
    folder = tempfile.mkdtemp(prefix="farebox-cpu-")
    os.chmod(folder, 0o755)
    os.mkdir(f"{folder}/pg")
    running = []
    try:
        upstream = await asyncio.start_server(provide, "127.0.0.1", 0)
        provider = upstream.sockets[0].getsockname()[1]
        server, url = postgres(f"{folder}/pg")
        running.append(server)
        gateways = {}
        for name, ledger in (("SQLite", f"{folder}/farebox.db"), ("PostgreSQL", url)):
            gateways[name] = serve(folder, name, ledger, provider)
            running.append(gateways[name][0])
        costs = {name: [] for name in gateways}
        databases = []
        for turn in range(ROUNDS + 1):
            for name, (gateway, port, keys) in gateways.items():
                before, database, begun = cpu(gateway.pid), cpu(server.pid), time.monotonic()
                customers = [customer(port, keys[at % KEYS], REQUESTS // CONNECTIONS) for at in range(CONNECTIONS)]
                await asyncio.gather(*customers)
                done, took = REQUESTS // CONNECTIONS * CONNECTIONS, time.monotonic() - begun
                cost, of_database = (cpu(gateway.pid) - before) / done * 1e6, (cpu(server.pid) - database) / done * 1e6
                print(f"{'warm-up' if turn == 0 else turn}: {name}: {cost:.0f} CPU-µs a request, {done / took:.0f} requests/s", file=sys.stderr)
                if turn > 0:
                    costs[name].append(cost)
                    databases += [of_database] if name == "PostgreSQL" else []
        sqlite, postgresql = (statistics.median(costs[name]) for name in ("SQLite", "PostgreSQL"))
        print("| requests at once | gateway on PostgreSQL | on SQLite | ratio | the database's own |\n|---:|---:|---:|---:|---:|")
        print(f"| {CONNECTIONS} | {postgresql:.0f} µs | {sqlite:.0f} µs | {postgresql / sqlite:.2f} | {statistics.median(databases):.0f} µs |")
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


asyncio.run(main())
