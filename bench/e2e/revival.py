"""How often a request brings back a block that the one before it left out, on real sessions.

    python -m bench.e2e.revival [--retention 0.1 ...] [--policy NAME ...]     # needs RECAP_CORPUS

A transition goes from one turn's selection to the next one's. It revives when a block that the first
left out is in the second. That is what a summary, or dropping old messages for good, cannot do. The
paper's 70 % is for its policy, its sessions and attention as the observer; here text reuse observes.
Every turn is selected anew, as after an idle pause.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bench.measured import keep, where
from recap.config import Settings
from recap.session import Session
from recap.transcript.formats import open_log
from recap.transcript.model import Transcript
from recap.turns import boundaries

PAPER_SHARE = 0.70
FEWEST_TURNS = 4
POLICIES = ("coverage", "paper", "no-graph", "recency", "bm25", "random")
RETENTIONS = ("0.1", "0.2", "0.3")
RESULT = Path(__file__).parents[1] / "results" / "revival.json"


def moments(transcript: Transcript) -> list[Transcript]:
    """Return the session as it was when each request of the person had arrived."""
    starts = [each.message for each in boundaries(transcript.messages) if not each.is_steering]
    return [_until(transcript, start + 1) for start in starts]


def _until(transcript: Transcript, end: int) -> Transcript:
    return Transcript(transcript.format, transcript.dialect, transcript.messages[:end])


def revivals(seen: list[Transcript], settings: Settings) -> list[int]:
    """Return for each transition how many blocks left out before are kept now."""
    found = []
    with Session(settings=settings) as session:
        dropped: set[str] = set()
        for number, transcript in enumerate(seen):
            done = session.compact(transcript, is_cold=True)
            kept = done.selection.is_kept.tolist()
            if number and dropped:
                found.append(
                    sum(k and id in dropped for id, k in zip(done.table.ids, kept, strict=True))
                )
            dropped = {id for id, k in zip(done.table.ids, kept, strict=True) if not k}
    return found


def sessions(corpus: Path) -> list[tuple[str, list[Transcript]]]:
    """Return the long enough sessions of the corpus, each content once."""
    found = {}
    for path in sorted((corpus / "sessions").glob("*/*")):
        transcript = open_log(path)
        seen = moments(transcript)
        if len(seen) >= FEWEST_TURNS:
            found.setdefault(tuple(m.parts for m in transcript.messages[:3]), (path.name, seen))
    return list(found.values())


def main() -> None:
    """Print a row for each policy and retention, and write them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--retention", nargs="*", default=RETENTIONS)
    parser.add_argument("--policy", nargs="*", default=POLICIES)
    args = parser.parse_args()
    corpus = sessions(Path(os.environ["RECAP_CORPUS"]))
    print(f"{len(corpus)} sessions of at least {FEWEST_TURNS} turns; the paper: {PAPER_SHARE:.0%}")
    print(f"{'policy':10} {'retention':>9} {'transitions':>11} {'revive':>7} {'blocks':>7}")
    rows = []
    for policy in args.policy:
        for retention in args.retention:
            settings = Settings(policy=policy, retention=retention, context_tokens=None)
            counts = [n for _, seen in corpus for n in revivals(seen, settings)]
            share = sum(n > 0 for n in counts) / len(counts)
            mean = sum(counts) / len(counts)
            rows.append({
                "policy": policy, "retention": retention, "transitions": len(counts),
                "share": round(share, 3), "blocks": round(mean, 2),
            })  # fmt: skip
            print(
                f"{policy:10} {retention:>9} {len(counts):>11} {share:>7.1%} {mean:>7.2f}",
                flush=True,
            )
    names = [name for name, _ in corpus]
    keep(RESULT, rows, where(sessions=names, paper=PAPER_SHARE))


if __name__ == "__main__":
    main()
