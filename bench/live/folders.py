"""`throng serve` over many run folders."""

import shutil
import subprocess
import time

import machine

GOAL_S = 1
# How long a list is shown before it is made anew, and a little.
LIST_LASTS_S = 1.2


def recorded(given, work):
    """A run folder of a few viewers."""
    folder = work / "recorded"
    stage = f"127.0.0.1:{machine.free_port()}"
    serves = [given.throng, "stage", "--listen", stage, "--card", "low"]
    with machine.started(serves, work / "recorded-stage.log"):
        time.sleep(1)
        command = [given.throng, "view", f"whep+http://{stage}/whep", "-n", "5", "--for", "5s",
                   "--quiet", "--output", folder]
        # Whatever its outcome is, it has a folder.
        subprocess.run(command, check=False, capture_output=True)
    if not (folder / "summary.json").is_file():
        raise FileNotFoundError(f"{folder} has no summary.json")
    return folder


def measure(given, size, work, goals):
    one, runs = recorded(given, work), work / "runs"
    names = [f"run-{number:04}" for number in range(size.folders)]
    for name in names:
        shutil.copytree(one, runs / name)
    first_s, again_ms, memory_mb = [], [], []
    for _ in range(size.times):
        port = machine.free_port()
        command = [given.throng, "serve", runs, f"127.0.0.1:{port}"]
        url = f"http://127.0.0.1:{port}/"
        with machine.serving(command, url, work / "serve.log") as (seconds, page, mb):
            missing = [name for name in names if name not in page]
            if missing:
                raise LookupError(f"{len(missing)} runs are not in the list")
            time.sleep(LIST_LASTS_S)
            began = time.monotonic()
            machine.get(url)
            again_ms.append(1000 * (time.monotonic() - began))
        first_s.append(seconds)
        memory_mb.append(mb)
    what = f"`throng serve` over {size.folders:,} run folders"
    goals.add(f"{what}: start to list", first_s, "s", GOAL_S, 2)
    goals.add("the list again, looked up anew", again_ms, "ms", digits=0)
    goals.add("memory of it", memory_mb, "MB", digits=0)
