"""Kill runs at random moments, and check that nothing is lost or repeated.

    python benchmarks/kills.py news.de news.en --kills 30

Each time a run in a new work folder is sent SIGKILL, from when it begins to write there until it
would end, and the same command is given again. The output has to be that of a run that was left
alone; the sentences that were encoded in both runs together are counted.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Runs mine-corpus; notes in its first argument how many sentences each batch of the encoder has.
RUN = """
import sys
from pathlib import Path
from encoder.bag.encoder import BagEncoder
from pipelines.cli.mine import mine_corpus

log, really_encode = open(sys.argv.pop(1), "a", buffering=1), BagEncoder.encode

def encode(self, sentences):
    log.write(f"{len(sentences)}\\n")
    return really_encode(self, sentences)

BagEncoder.encode = encode
sys.exit(mine_corpus())
"""


def start(arguments: list[str], log: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", RUN, str(log), *arguments, "-q"]
    return subprocess.Popen(command, start_new_session=True)


def encoded(log: Path) -> int:
    return sum(map(int, log.read_text(encoding="ascii").split()))


def begun(work_dir: Path, process: subprocess.Popen) -> float:
    while not (work_dir / "sentences").exists() and process.poll() is None:
        time.sleep(0.005)
    return time.perf_counter()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args, options = parser.parse_known_args()  # others are mine-corpus's own
    moments = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        work_dir, out, log = (Path(folder) / name for name in ("work", "out.jsonl", "log"))
        run = [args.source, args.target, "-o", str(out), "--work-dir", str(work_dir)]
        run += ["--encoder", "mini", *options]
        process = start(run, log)
        first = begun(work_dir, process)
        assert process.wait() == 0
        length = time.perf_counter() - first
        expected, sentences = out.read_bytes(), encoded(log)
        print(f"undisturbed: {length:.1f} s of work, {sentences:,} sentences encoded", flush=True)
        again, worst = 0, 0
        number = 0
        while number < args.kills:
            shutil.rmtree(work_dir)
            out.unlink()
            log.unlink()
            process = start(run, log)
            begun(work_dir, process)
            moment = moments.uniform(0, length)
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:  # it was quicker this time
                continue
            number += 1
            before = encoded(log)
            assert start(run, log).wait() == 0
            same = out.read_bytes() == expected
            twice = encoded(log) - sentences
            again, worst = again + twice, max(worst, twice)
            print(
                f"{number}: killed after {moment:.2f} s, {before:,} encoded before; then "
                f"{'the same' if same else 'ANOTHER'} output, {twice:,} sentences encoded twice",
                flush=True,
            )
            if not same:
                return 1
    print(f"{args.kills} kills: the same output each time; {again:,} sentences were encoded twice,")
    print(f"at most {worst:,} by one kill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
