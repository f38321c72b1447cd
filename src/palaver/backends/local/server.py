"""The child that holds the small local model: llama.cpp's own server, on a loopback port that only its starter knows.

Started by `backend.py` as a script. It reads one line of JSON from stdin (where the weights are, the key every request must
carry, the limits), loads the model, writes one line to stdout, `{"address": …}` or `{"error": …}`, and then serves OpenAI
Chat Completions until stdin ends. It imports nothing of Palaver, so that it starts quickly and could run anywhere; it must
never listen beyond loopback, and never fetch anything.
"""

import json
import sys
from typing import Any

HTTP_THREADS = 4
"""Threads that wait on connections: one for each stream that waits its turn, and one to spare. They compute nothing."""

TEMPERATURE = 0.2
TOP_P = 0.9
"""Both from the model's card: at 135 million parameters anything livelier turns into nonsense."""

DRY_MULTIPLIER = 0.8
"""Without a penalty on repeated phrases a model this small falls into loops; one on single words spoils its answers."""


def serve(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["weights"]
    params.model_alias = {settings["model"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["api_key"]]
    params.offline = True
    params.verbosity = 1
    # A chat and nothing else: no page, no view of what others ask, no permission for web pages of any origin.
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.cors_origins = ""
    params.n_ctx = settings["window_tokens"]
    params.n_predict = settings["answer_tokens"]
    params.n_parallel = 1
    params.n_gpu_layers = 0
    # The prompts of earlier conversations would be kept in up to 8 GiB of memory.
    params.cache_ram_mib = 0
    params.n_threads_http = HTTP_THREADS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.sampling.temp = TEMPERATURE
    params.sampling.top_p = TOP_P
    params.sampling.dry_multiplier = DRY_MULTIPLIER
    return xllamacpp.Server(params)


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    try:
        server = serve(settings)
    except Exception as error:  # noqa: BLE001 whatever it is, the parent must be told
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)  # noqa: T201 this is the protocol
        sys.exit(1)
    print(json.dumps({"address": server.listening_address}), flush=True)  # noqa: T201
    sys.stdin.read()


if __name__ == "__main__":
    main()
