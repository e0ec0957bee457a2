#!/usr/bin/env python3
"""What one request at a time costs a gateway: system calls and changes of threads, by thread. A busy machine changes neither.

FAREBOX=target/dist/farebox bench/low_rate.py [calls|switches|growth] [REQUESTS [RATE]] starts a gateway on a new ledger in TMPDIR
and a provider that answers at once, and asks over one connection: RATE times a second, or with 0 as soon as the last answer is there.

calls     system calls of a request, with strace
switches  how often a request's threads went to sleep, and their CPU-us
growth    the same for each tenth of the requests, with page faults, memory, reads and writes: what grows within a run

FAREBOX_LOG=info (default warn) adds the log, which goes to a file. CPU=1 keeps the gateway on that CPU. Standard library only.
"""

import collections
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from subject import CATALOG, ROUTES, answer

FAREBOX = os.path.abspath(os.environ.get("FAREBOX", "target/dist/farebox"))
MODE = sys.argv[1] if len(sys.argv) > 1 else "calls"
REQUESTS, RATE = [int(value) for value in sys.argv[2:]] + [300, 0][max(len(sys.argv) - 2, 0) :]
ANSWER = answer("a few words", 3)
QUESTION = json.dumps({
    "model": "bench", "max_tokens": 16, "messages": [{"role": "user", "content": "and the next line " * 50}],
}).encode()
LENGTH = re.compile(rb"content-length: (\d+)", re.I)


def message(connection, rest=b""):
    """Reads a head and its body; what came behind it, too. None at the end."""
    while b"\r\n\r\n" not in rest:
        more = connection.recv(65536)
        if not more:
            return None
        rest += more
    head, _, body = rest.partition(b"\r\n\r\n")
    length = int(LENGTH.search(head).group(1))
    while len(body) < length:
        body += connection.recv(65536)
    return head, body[length:]


def provide(listener):
    def serve(connection):
        rest = b""
        while read := message(connection, rest):
            rest = read[1]
            connection.sendall(ANSWER)

    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


class Gateway:
    def __init__(self, folder, provider):
        self.folder = folder
        for name, text in [("catalog.toml", CATALOG), ("routes.toml", ROUTES % provider)]:
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        environment = {"FAREBOX_LOG": "warn", **os.environ}
        create = ["keys", "create", "--new-ledger", "--label", "bench", "--balance", "900", "--reference", "bench", "--rate", "1000000"]
        created = subprocess.run([FAREBOX, *create, "--json"], cwd=folder, env=environment, capture_output=True, text=True, check=True)
        self.secret = json.loads(created.stdout)["secret"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [FAREBOX, "serve", "--listen", f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0"]
        if "CPU" in os.environ:
            command = ["taskset", "-c", os.environ["CPU"], *command]
        log = open(os.path.join(folder, "log"), "w")
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log, stdout=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.connection = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.1)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, times):
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n"
        request = (head % (self.secret, len(QUESTION))).encode() + QUESTION
        began = time.monotonic()
        for number in range(times):
            if RATE:
                time.sleep(max(began + number / RATE - time.monotonic(), 0))
            self.connection.sendall(request)
            answered, _ = message(self.connection)
            assert answered.startswith(b"HTTP/1.1 200"), answered

    def threads(self):
        """Of each thread: its name, how often it went to sleep, and its CPU time in ns."""
        found = {}
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            file = f"/proc/{self.process.pid}/task/{thread}/"
            try:
                status, scheduled, name = (open(file + part).read() for part in ["status", "schedstat", "comm"])
            except OSError:
                continue
            slept = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M).group(1)
            found[thread] = name.strip(), int(slept), int(scheduled.split()[0])
        return found

    def memory(self):
        """Page faults, resident KiB, reads and writes."""
        stat = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        counts = dict(line.split(": ") for line in open(f"/proc/{self.process.pid}/io").read().splitlines())
        return int(stat[7]), int(stat[21]) * os.sysconf("SC_PAGE_SIZE") // 1024, int(counts["syscr"]), int(counts["syscw"])

    def stop(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def calls(gateway):
    trace = os.path.join(gateway.folder, "trace")
    strace = subprocess.Popen(["strace", "-f", "-qq", "-o", trace, "-p", str(gateway.process.pid)])
    time.sleep(2)
    gateway.ask(20)
    begin = os.path.getsize(trace)
    gateway.ask(REQUESTS)
    time.sleep(0.1)
    names = {thread: name for thread, (name, _, _) in gateway.threads().items()}
    end = os.path.getsize(trace)
    strace.send_signal(signal.SIGINT)
    strace.wait()
    with open(trace) as file:
        file.seek(begin)
        made = re.findall(r"^(\d+) +(\w+)\(", file.read(end - begin), re.M)
    by_thread = collections.Counter((call, names.get(thread, "?")) for thread, call in made)
    for call, count in collections.Counter(call for _, call in made).most_common():
        of = [(thread, times / REQUESTS) for (name, thread), times in by_thread.most_common() if name == call]
        print(f"{call:<16} {count / REQUESTS:6.2f}   " + ", ".join(f"{thread} {times:.2f}" for thread, times in of if times >= 0.05))
    print(f"{'all':<16} {len(made) / REQUESTS:6.2f}")


def switches(gateway, requests=REQUESTS):
    before = gateway.threads()
    gateway.ask(requests)
    sums = collections.defaultdict(lambda: [0, 0])
    for thread, (name, slept, used) in gateway.threads().items():
        _, slept_before, used_before = before.get(thread, (name, 0, 0))
        sums[name][0] += slept - slept_before
        sums[name][1] += used - used_before
    rows = sorted(sums.items(), key=lambda row: -row[1][1])
    all_of_them = [("all", [sum(each) for each in zip(*sums.values())])]
    return [(name, slept / requests, used / requests / 1000) for name, (slept, used) in rows + all_of_them]


def growth(gateway):
    before = gateway.memory()
    for tenth in range(1, 11):
        rows = {name: used for name, _, used in switches(gateway, REQUESTS // 10)}
        now = gateway.memory()
        faults, reads, writes = [(now[at] - before[at]) / (REQUESTS // 10) for at in (0, 2, 3)]
        print(f"{tenth * REQUESTS // 10:>9} requests: {rows['all']:7.1f} CPU-us, the writer's {rows['ledger-writer']:6.1f}; "
              f"{faults:.2f} faults, {reads:.2f} reads, {writes:.2f} writes; {now[1]} KiB resident", flush=True)
        before = now


with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
    threading.Thread(target=provide, args=(listener,), daemon=True).start()
    gateway = Gateway(folder, listener.getsockname()[1])
    try:
        gateway.ask(50)
        if MODE == "switches":
            for name, slept, used in switches(gateway):
                print(f"{name:<16} {slept:6.2f} sleeps {used:9.1f} CPU-us")
        else:
            {"calls": calls, "growth": growth}[MODE](gateway)
    finally:
        gateway.stop()
