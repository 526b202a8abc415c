"""A producer in Python: joins at a consumer's socket path and writes test frames in place.

    python producer.py FRAMES BYTES [PATH]      without PATH: through the inherited socket
                                                (THRONG_RING_FD)

Byte i of frame n is (31 n + i) mod 251.
"""

import sys

import throng_ring


def main(frames, length, path=None):
    producer = throng_ring.Producer.connect(path) if path else throng_ring.Producer.join_inherited()
    producer.set_policy("wait", timeout=30)
    period = bytes(range(251))
    pattern = period * (length // 251 + 2)
    for n in range(frames):
        flags = throng_ring.KEYFRAME if n % 30 == 0 else 0
        claim = producer.claim(
            length, stream=7, flags=flags, timestamp_ns=n * 1_000_000_000 // 30, user_data=n
        )
        if claim is None:
            continue  # dropped, and counted
        with claim:
            start = 31 * n % 251
            claim.data[:] = pattern[start : start + length]


main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
