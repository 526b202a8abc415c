"""The receiving side in Python: asyncio and the package `websockets`, as in the client of field
report 4.

Uses the protocol of crates/ipc/src/role/mod.rs and reads the frames of crates/ipc/src/frame.rs.
"""

import asyncio
import json
import resource
import struct
import sys
import time

HEAD = struct.Struct("<IBBHQQQQ")
TAIL = struct.Struct("<Q")
MAGIC = 0x6D726854
MEASURED, END = 1, 2


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (
        time.process_time_ns(),
        int(used.ru_utime * 1e9),
        int(used.ru_stime * 1e9),
        used.ru_nvcsw + used.ru_nivcsw,
    )


class Tally:
    """Frames received, over all producers."""

    def __init__(self, producers, reads_all):
        self.next = [0] * producers
        self.reads_all = reads_all
        self.frames = self.bytes = self.ended = self.first = self.last = 0
        self.start = None
        # Latencies in classes of 1/16 of a power of two: fixed memory, 6 % wide at most.
        self.latencies = {}
        self.longest = 0

    def take(self, frame):
        magic, kind, producer, _, sequence, length, seed, due = HEAD.unpack_from(frame)
        if magic != MAGIC or length != len(frame):
            raise ValueError("its header is not a frame's")
        if TAIL.unpack_from(frame, length - 8)[0] != sequence ^ seed:
            raise ValueError("the tail is not that of frame %d" % sequence)
        if sequence != self.next[producer]:
            raise ValueError(
                "producer %d: frame %d came, %d should have"
                % (producer, sequence, self.next[producer])
            )
        self.next[producer] += 1
        if kind == MEASURED:
            if self.start is None:
                say("measuring")
                self.start = usage()
                self.first = time.monotonic_ns()
            self.frames += 1
            self.bytes += length
            if due:
                late = max(1, time.monotonic_ns() - due)
                shift = max(0, late.bit_length() - 5)
                self.longest = max(self.longest, late)
                key = (late >> shift) << shift
                self.latencies[key] = self.latencies.get(key, 0) + 1
        elif kind == END:
            self.last = time.monotonic_ns()
            self.ended += 1
            return
        if self.reads_all:
            self.read(frame, length)

    def read(self, frame, length):
        """Every byte is read once (a hash, in C): Python is too slow to compare them one by one."""
        import zlib

        zlib.adler32(memoryview(frame)[HEAD.size : length - 8])

    def quantile(self, share):
        wanted, seen = share * sum(self.latencies.values()), 0
        for key in sorted(self.latencies):
            seen += self.latencies[key]
            if seen >= wanted:
                return key
        return 0

    def report(self):
        end = usage()
        cpu, user, system, switches = (b - a for a, b in zip(self.start or end, end))
        samples = sum(self.latencies.values())
        latency = None
        if samples:
            latency = {
                "p50": self.quantile(0.5),
                "p99": self.quantile(0.99),
                "max": self.longest,
                "samples": samples,
            }
        return {
            "frames": self.frames,
            "bytes": self.bytes,
            "frames_not_sent": 0,
            "cpu_ns": cpu,
            "user_ns": user,
            "system_ns": system,
            "context_switches": switches,
            "first_ns": self.first,
            "last_ns": self.last,
            "system_calls": None,
            "latency": latency,
        }


async def main():
    task = json.loads(sys.stdin.readline())
    try:
        from websockets import serve
    except ImportError as error:
        say({"failed": {"missing": True, "reason": "the Python package websockets: %s" % error}})
        return
    producers = task["side"]["producers"]
    tally = Tally(producers, task["reading"] == "all")
    over = asyncio.get_running_loop().create_future()

    async def consume(connection, _path=None):
        try:
            async for frame in connection:
                tally.take(frame)
                if tally.ended == producers:
                    break
        except Exception as error:
            if not over.done():
                over.set_exception(error)
        if tally.ended == producers and not over.done():
            over.set_result(None)
        # The connection stays open until the harness ends this process.
        await asyncio.sleep(3600)

    # No compression, which would only cost CPU between processes of one machine.
    server = await serve(consume, "127.0.0.1", 0, max_size=None, compression=None)
    address = "%s:%d" % server.sockets[0].getsockname()[:2]
    say({"ready": {"address": address}})
    try:
        await over
    except Exception as error:
        say({"failed": {"missing": False, "reason": "%s: %s" % (type(error).__name__, error)}})
        return
    say({"done": tally.report()})
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    import os

    # Connections that are still open need no closing handshake.
    os._exit(0)


asyncio.run(main())
