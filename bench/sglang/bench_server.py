"""Two real servers, one with the flag and one without: what is measured, and what a turn takes longer.

    python -m bench.sglang.bench_server MODEL [--device cuda] [--sessions 4] [--turns 8] [-- SERVER OPTIONS]

For a machine with a GPU that holds the model twice (the default options give each server two fifths of
it); with ``--device cpu`` in the environment of .ci/install_sglang_cpu.sh it tries itself. Each turn of
each session goes to both servers in alternating order, greedy. Said at the end: which runtime features
were on and seen (decode in a captured graph, overlap scheduling, prefill in chunks, reuse of cached
prefixes), what the server measured of how many requests and why it did not of others, how many answers
are the same token for token, and what a turn takes longer with the flag, with the upper end of its 95 %
interval; the bar is 1 % of a turn's time. Rows go to results/sglang_server.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bench.measured import keep, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHIM = Path(__file__).parents[2] / "tests" / "sglang" / "shim"
RESULT = Path(__file__).parents[1] / "results" / "sglang_server.json"
START_S = 900
WORDS, ANSWER = 1500, 64
"""Words that a request adds, and tokens of each answer."""

OPTIONS = {
    "cuda": (
        *("--mem-fraction-static", "0.4", "--chunked-prefill-size", "1024"),
        "--enable-cache-report",
    ),
    "cpu": (
        *("--dtype", "float32", "--attention-backend", "torch_native", "--grammar-backend", "none"),
        *("--max-total-tokens", "8192", "--context-length", "4000", "--chunked-prefill-size", "64"),
        *("--skip-server-warmup", "--sleep-on-idle", "--enable-cache-report"),
    ),
}
CPU_ENVIRONMENT = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_CPU_OMP_THREADS_BIND": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(SHIM),
}


class Server:
    """A running server."""

    def __init__(self, port: int, log: Path) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self.log = log

    def get(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def chat(self, session: str, messages: Sequence[Mapping[str, str]]) -> tuple[float, Any]:
        """Return seconds and the answer of a greedy turn."""
        body = {
            "model": "served",
            "messages": list(messages),
            "session_id": session,
            "temperature": 0,
            "max_tokens": ANSWER,
            "ignore_eos": True,
        }
        start = time.perf_counter()
        answer = self.get("/v1/chat/completions", body)
        return time.perf_counter() - start, answer


@contextmanager
def served(model: str, device: str, options: Sequence[str], folder: Path) -> Iterator[Server]:
    """Start a server in a folder of its own, and end it."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", model),
        *("--device", device, "--host", "127.0.0.1", "--port", str(port), *options),
    ]
    environ = os.environ | {"RECAP_CONFIG": os.devnull}
    environ |= CPU_ENVIRONMENT if device == "cpu" else {}
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=folder, stdout=stream, stderr=subprocess.STDOUT, env=environ,
            start_new_session=True,
        )  # fmt: skip
    server = Server(port, log)
    try:
        _wait(server, process)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.get("/health_generate")
        except OSError:
            time.sleep(1)
        except ValueError:  # healthy, and no JSON
            return
        else:
            return
    raise SystemExit(f"the server did not start:\n{server.log.read_text()[-3000:]}")


def request(session: int, turn: int, words: int) -> str:
    """Return what the person asks: names that come again, so that there is something to attend to."""
    names = [f"module_{(session * 31 + turn * 7 + i) % 97}.py" for i in range(words)]
    return f"Turn {turn}. Look at these and name the next one: " + " ".join(names)


def features(server: Server, cached: int, longest: int) -> dict[str, bool]:
    """Return which runtime features were on and had something to do."""
    log = server.log.read_text(errors="replace")
    given = server.get("/server_info")
    return {
        "decode graph": re.search(r"Capture .*graph.* end", log, re.IGNORECASE) is not None,
        "overlap": not given["disable_overlap_schedule"],
        "chunked prefill": 0 < (given["chunked_prefill_size"] or 0) < longest,
        "prefix reuse": cached > 0,
        "recap is on": "recap is on" in log,
    }


def main() -> None:
    """Serve, compare, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--device", choices=tuple(OPTIONS), default="cuda")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--words", type=int, default=WORDS, help="words that a request adds")
    parser.add_argument("options", nargs="*", help="further options of both servers, after --")
    args = parser.parse_args()
    if args.sessions * args.turns < 2:
        parser.error("a mean with an interval takes two turns at least")
    options = (*OPTIONS[args.device], *args.options)
    model = str(Path(args.model).resolve())
    with TemporaryDirectory() as folder, ExitStack() as stack:
        with_flag = ("--enable-recap", *options)
        pair = {
            flagged: stack.enter_context(
                served(
                    model, args.device, chosen, Path(folder) / ("with" if flagged else "without")
                )
            )
            for flagged, chosen in ((False, options), (True, with_flag))
        }
        rows = turns(pair, args.sessions, args.turns, args.words)
        report(pair[True], rows, model, args.device)


def turns(
    pair: Mapping[bool, Server], sessions: int, count: int, words: int
) -> list[dict[str, Any]]:
    """Send every turn to both; return a row each."""
    rows = []
    history: dict[int, list[dict[str, str]]] = {}
    for turn in range(count + 1):
        for session in range(sessions):
            messages = history.setdefault(session, [])
            messages.append({"role": "user", "content": request(session, turn, words)})
            order = (False, True) if (turn + session) % 2 else (True, False)
            seen = {flagged: pair[flagged].chat(f"s{session}", messages) for flagged in order}
            texts = {f: seen[f][1]["choices"][0]["message"]["content"] for f in order}
            usage = seen[True][1]["usage"]
            messages.append({"role": "assistant", "content": texts[False]})
            details = usage.get("prompt_tokens_details") or {}
            if turn:  # the first turn compiles and captures
                rows.append({
                    "session": session, "turn": turn, "tokens": usage["prompt_tokens"],
                    "cached": details.get("cached_tokens") or 0,
                    "without_s": seen[False][0], "with_s": seen[True][0],
                    "same": texts[False] == texts[True],
                })  # fmt: skip
    return rows


def settled(server: Server) -> Any:
    """Return what the server counted, once every request that was asked about has its outcome."""
    deadline = time.monotonic() + 60
    while True:
        status = server.get("/recap/status")
        is_done = status["prepared"].get("asked", 0) == sum(status["results"].values())
        if is_done or time.monotonic() > deadline:
            return status
        time.sleep(0.2)


def report(server: Server, rows: list[dict[str, Any]], model: str, device: str) -> None:
    """Print what came out and keep it."""
    status = settled(server)
    on = features(server, max(r["cached"] for r in rows), max(r["tokens"] for r in rows))
    added = [(row["with_s"] - row["without_s"]) / row["without_s"] for row in rows]
    mean = statistics.mean(added)
    bound = mean + 1.96 * statistics.stdev(added) / len(added) ** 0.5
    for name, is_on in on.items():
        print(f"{name:16} {'yes' if is_on else 'NOT SEEN'}")
    print(json.dumps(status, indent=1))
    same = sum(row["same"] for row in rows)
    print(
        f"{same} of {len(rows)} answers are the same; turn with the flag {mean:+.2%}, at most {bound:+.2%}"
    )
    measured = where("torch", "sglang", model=Path(model).name, device=name_of(device))
    keep(RESULT, rows, measured, features=on, status=status, added=mean, added_bound=bound)


def name_of(device: str) -> str:
    """Return the name of the accelerator."""
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else device


if __name__ == "__main__":
    main()
