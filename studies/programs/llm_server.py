"""Serve a GGUF file with llama.cpp from the package xllamacpp, with the options of `llama-server`.

    python3 llm_server.py --model model.gguf --port 8080 --threads 2 --parallel 4

Where `llama-server` is installed, it can replace `python3 llm_server.py`.
"""

import argparse
import signal
import sys

import xllamacpp

SWITCH = {"on": True, "off": False}
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
CACHE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}  # as numbered in ggml.h


def parameters(given: argparse.Namespace) -> xllamacpp.CommonParams:
    """Return the parameters of a server."""
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.hostnames = [given.host]
    params.port = given.port
    params.n_ctx = given.ctx_size
    params.n_batch = given.batch_size
    params.n_ubatch = given.ubatch_size
    params.n_parallel = given.parallel
    params.kv_unified = given.kv_unified
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads_batch or given.threads
    params.cache_type_k = CACHE_TYPES[given.cache_type_k]
    params.cache_type_v = CACHE_TYPES[given.cache_type_v]
    params.flash_attn_type = FLASH_ATTENTION[given.flash_attn]
    params.cache_ram_mib = given.cache_ram
    params.fit_params = SWITCH[given.fit]
    params.endpoint_metrics = given.metrics
    return params


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-t", "--threads", type=int, default=-1, help="for tokens that are generated")
    parser.add_argument("-tb", "--threads-batch", type=int, help="for prompts; the same as --threads by default")
    parser.add_argument("-c", "--ctx-size", type=int, default=0, help="tokens of all slots together")
    parser.add_argument("-b", "--batch-size", type=int, default=2048)
    parser.add_argument("-ub", "--ubatch-size", type=int, default=512)
    parser.add_argument("-np", "--parallel", type=int, default=1, help="slots")
    parser.add_argument("-kvu", "--kv-unified", action="store_true", help="slots share one cache")
    parser.add_argument("-ctk", "--cache-type-k", choices=CACHE_TYPES, default="f16")
    parser.add_argument("-ctv", "--cache-type-v", choices=CACHE_TYPES, default="f16")
    parser.add_argument("-fa", "--flash-attn", choices=FLASH_ATTENTION, default="auto")
    parser.add_argument("-cram", "--cache-ram", type=int, default=8192, help="MiB of prompts that are kept")
    parser.add_argument("-fit", "--fit", choices=SWITCH, default="on")
    parser.add_argument("--metrics", action="store_true", help="serve /metrics")
    server = xllamacpp.Server(parameters(parser.parse_args()))
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    # xllamacpp serves in threads of its own.
    signal.pause()


if __name__ == "__main__":
    main()
