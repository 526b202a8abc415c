"""Programs that are measured, what they use, and the machine."""

import contextlib
import datetime
import os
import pathlib
import platform
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ANSWERED_WITHIN_S = 60


@contextlib.contextmanager
def started(command, log):
    """A program whose output goes to the file `log`, ended at the end."""
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def still_runs(process, log):
    """Ends the benchmark if a program has ended that should not have."""
    if process.poll() is not None:
        sys.exit(f"{' '.join(map(str, process.args))} ended:\n{pathlib.Path(log).read_text()}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=ANSWERED_WITHIN_S) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def serving(command, url, log):
    """A program that serves, ended at the end: seconds from its start until all of the first answer
    is there, the answer, and the most memory that it had until then, MB."""
    began = time.monotonic()
    with started(command, log) as process:
        while True:
            still_runs(process, log)
            try:
                body = get(url)
                break
            except urllib.error.URLError:
                time.sleep(0.002)
        seconds = time.monotonic() - began
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        peak_kib = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        yield seconds, body, int(peak_kib.split()[1]) * 1024 / 1e6


def cpu_s(pid):
    """CPU time of a process, all its threads, those that have ended too: its CPU clock
    (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def machine_ticks():
    """Of all CPUs: what a hypervisor took, and all time."""
    with open("/proc/stat", encoding="ascii") as lines:
        fields = [int(field) for field in lines.readline().split()[1:9]]
    return fields[7], sum(fields)


def load():
    return os.getloadavg()[0]


def date():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def told(throng):
    """CPU, kernel and versions, as a sentence."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(": ")[1] for line in cpuinfo if line.startswith("model name"))
    of = [next(names, "CPU not known"), f"{os.cpu_count()} cores", f"Linux {platform.release()}"]
    for program in (throng, "chromium"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        of.append(said.stdout.splitlines()[0].split(" built on")[0].strip())
    return ", ".join(of) + "."
