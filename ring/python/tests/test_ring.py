"""The package as a user sees it: views and their guards in one process, and real producers in
others.

Run by scripts/python.sh, which names the C producer in THRONG_RING_C_PRODUCER if there is a
compiler.
"""

import asyncio
import gc
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import throng_ring
from throng_ring import Consumer, Producer, RingError

try:
    import numpy
except ImportError:
    numpy = None

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
FRAMES, BYTES = 100, 40_000


def expected(n):
    return bytes((31 * n + i) % 251 for i in range(BYTES))


def pair(frames=4):
    consumer = Consumer()
    lane, fd = consumer.add_lane(frame_bytes=BYTES, frames=frames)
    return consumer, Producer.join(fd)


def send(producer, data, **info):
    with producer.claim(len(data), **info) as claim:
        claim.data[:] = data


# A program that forks with a frame or a claim in its hands. The child ends as programs do: what it
# inherited is dropped.
FORKS = """
import os, sys
from throng_ring import Consumer, Producer, RingError

def child(act=lambda: None):
    if (pid := os.fork()) == 0:
        act()
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

consumer = Consumer()
lane, fd = consumer.add_lane(frame_bytes=1000, frames=4)
producer = Producer.join(fd)
producer.set_policy("drop_newest")

def fill(byte):
    sent = 0
    while claim := producer.claim(1000):
        with claim:
            claim.data[:] = bytes([byte]) * 1000
        sent += 1
    return sent

def refused():
    try:
        claim.commit()
    except RingError as error:
        assert "forked" in str(error), error
    else:
        raise AssertionError("a child committed its parent's claim")
"""


class Forks(unittest.TestCase):
    def run_program(self, text):
        subprocess.run([sys.executable, "-W", "error", "-c", FORKS + text], check=True, timeout=60)

    def test_a_childs_exit_leaves_the_parent_its_frames(self):
        self.run_program("""
count = fill(1)
frames = [consumer.peek() for _ in range(count)]
views = [memoryview(frame) for frame in frames]
give_back = lambda: [held.release() for held in views + frames]
child()
child(give_back)
assert fill(2) == 0, "there is room where the parent reads"
assert consumer.held == count and all(bytes(view) == bytes([1]) * 1000 for view in views)
give_back()
assert consumer.held == 0 and fill(3) == count
assert bytes(consumer.peek()) == bytes([3]) * 1000
""")

    def test_a_childs_exit_leaves_the_parent_its_claim(self):
        self.run_program("""
claim = producer.claim(5)
child()
child(lambda: claim.abort())
child(refused)
claim.data[:] = b"whole"
claim.commit()
assert bytes(consumer.peek()) == b"whole"
""")


class Views(unittest.TestCase):
    def test_a_frame_arrives_as_it_was_written(self):
        consumer, producer = pair()
        send(
            producer,
            b"hello",
            stream=3,
            kind=9,
            flags=throng_ring.KEYFRAME,
            timestamp_ns=77,
            user_data=1 << 60,
        )
        self.assertTrue(consumer.wait(0))
        with consumer.peek() as frame:
            self.assertEqual(
                (frame.stream, frame.kind, frame.flags, frame.timestamp_ns), (3, 9, 1, 77)
            )
            self.assertEqual((frame.user_data, frame.sequence, len(frame)), (1 << 60, 0, 5))
            self.assertEqual(bytes(frame), b"hello")
            self.assertTrue(frame.data.readonly)
            with self.assertRaises(TypeError):
                frame.data[0] = 1
        self.assertIsNone(consumer.peek())
        self.assertEqual(consumer.held, 0)

    def test_room_is_given_back_with_the_last_view(self):
        consumer, producer = pair()
        send(producer, b"kept")
        frame = consumer.peek()
        view = memoryview(frame)
        part = view[1:3]
        frame.release()
        self.assertEqual((consumer.held, bytes(part)), (1, b"ep"))
        with self.assertRaises(BufferError):
            memoryview(frame)
        view.release()
        self.assertEqual(consumer.held, 1)
        part.release()
        self.assertEqual(consumer.held, 0)
        frame.release()

    def test_a_view_keeps_frame_and_memory_alive(self):
        consumer, producer = pair()
        send(producer, b"alive")
        view = memoryview(consumer.peek())
        del consumer, producer
        gc.collect()
        self.assertEqual(bytes(view), b"alive")

    def test_a_forgotten_frame_is_given_back(self):
        consumer, producer = pair()
        send(producer, b"x")
        consumer.peek()
        gc.collect()
        self.assertEqual(consumer.held, 0)

    def test_several_frames_may_be_held_and_released_in_any_order(self):
        consumer, producer = pair()
        for n in range(3):
            send(producer, bytes([n]))
        frames = [consumer.peek() for _ in range(3)]
        frames[1].release()
        self.assertEqual([bytes(frames[0]), bytes(frames[2]), consumer.held], [b"\0", b"\2", 2])

    def test_a_commit_waits_for_no_view_but_refuses(self):
        consumer, producer = pair()
        claim = producer.claim(8)
        view = memoryview(claim)
        with self.assertRaisesRegex(BufferError, "view of the claim is open"):
            claim.commit()
        view[:] = b"12345678"
        view.release()
        claim.commit(4)
        with self.assertRaises(BufferError):
            memoryview(claim)
        with self.assertRaisesRegex(ValueError, "committed or aborted"):
            claim.commit()
        self.assertEqual(bytes(consumer.peek()), b"1234")

    def test_an_exception_aborts_the_claim_and_leaves_a_gap(self):
        consumer, producer = pair()
        with self.assertRaises(ZeroDivisionError), producer.claim(8):
            1 / 0
        send(producer, b"next")
        with consumer.peek() as frame:
            self.assertEqual((frame.sequence, bytes(frame)), (1, b"next"))
            self.assertTrue(frame.flags & throng_ring.DISCONTINUITY)

    def test_what_does_not_fit_is_dropped_or_refused(self):
        consumer, producer = pair()
        with self.assertRaisesRegex(RingError, "never fits"):
            producer.claim(producer.frame_bytes_max + 1)
        claims = [producer.claim(BYTES) for _ in range(10)]
        self.assertIsNone(claims[-1])
        with self.assertRaisesRegex(ValueError, "there is no policy"):
            producer.set_policy("hope")

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_reads_and_writes_in_place(self):
        consumer, producer = pair()
        with producer.claim(16) as claim:
            numpy.frombuffer(claim, numpy.uint8)[:] = 7
        array = numpy.frombuffer(consumer.peek(), numpy.uint8)
        self.assertEqual(
            (array.sum(), array.flags.writeable, array.flags.owndata), (112, False, False)
        )
        self.assertEqual(consumer.held, 1, "the array holds the frame")
        del array
        self.assertEqual(consumer.held, 0)


class Waiting(unittest.TestCase):
    def test_frames_are_released_by_one_thread_while_another_waits(self):
        consumer, producer = pair()
        send(producer, b"first")
        frame = consumer.peek()
        waiter = threading.Thread(target=consumer.wait, args=(60,))
        waiter.start()
        frame.release()
        self.assertEqual(consumer.held, 0)
        send(producer, b"second")
        waiter.join()
        self.assertEqual(bytes(consumer.peek()), b"second")

    def full(self, timeout):
        """A ring without room, whose producer waits for some, and all claims that fill it."""
        consumer, producer = pair()
        claims = list(iter(lambda: producer.claim(BYTES), None))
        producer.set_policy("wait", timeout=timeout)
        return consumer, producer, claims

    def test_other_threads_commit_and_abort_while_one_waits_for_room(self):
        for finish in ("commit", "abort", "forget"):
            with self.subTest(finish):
                consumer, producer, claims = self.full(timeout=10)
                got = []
                waiter = threading.Thread(target=lambda: got.append(producer.claim(BYTES)))
                waiter.start()
                time.sleep(0.2)  # so that it waits; were it slower, the test would only prove less
                if finish == "forget":
                    del claims[0]
                    gc.collect()
                else:
                    getattr(claims[0], finish)()
                if frame := consumer.peek():
                    frame.release()
                waiter.join()
                self.assertIsNotNone(
                    got[0], "room was released long before the ten seconds were over"
                )

    def test_ctrl_c_ends_a_wait_for_room(self):
        # A process that a shell starts in the background ignores the signal, and Python does not
        # change that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        consumer, producer, claims = self.full(timeout=60)
        began = time.monotonic()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            producer.claim(BYTES)
        self.assertLess(time.monotonic() - began, 30)
        claims[0].commit()
        consumer.peek().release()
        self.assertIsNotNone(producer.claim(BYTES))

    def test_a_wait_for_room_ends_with_its_time_or_its_consumer(self):
        consumer, producer, claims = self.full(timeout=0.2)
        self.assertIsNone(producer.claim(BYTES))
        producer.set_policy("wait", timeout=60)
        got = []

        def wait():
            try:
                producer.claim(BYTES)
            except RingError as error:
                got.append(str(error))

        waiter = threading.Thread(target=wait)
        waiter.start()
        del consumer
        gc.collect()
        waiter.join(30)
        self.assertRegex(got[0], "consumer")

    def test_asyncio_gets_all_frames_and_the_end(self):
        consumer, producer = pair()

        async def collect():
            got = []
            async for frame in throng_ring.frames(consumer):
                got.append(bytes(frame))
            return got

        def produce():
            nonlocal producer
            producer.set_policy("wait", timeout=60)
            for n in range(50):
                send(producer, bytes([n]) * 20_000)
            producer = None

        thread = threading.Thread(target=produce)
        thread.start()
        got = asyncio.run(asyncio.wait_for(collect(), 60))
        thread.join()
        self.assertEqual(got, [bytes([n]) * 20_000 for n in range(50)])


class Restart(unittest.TestCase):
    def test_a_new_consumer_goes_on_where_a_killed_one_stopped(self):
        supervisor = Consumer()
        lane, fd = supervisor.add_lane(frame_bytes=BYTES, frames=4)
        producer = Producer.join(fd)
        exported = supervisor.export(lane)
        with self.assertRaisesRegex(RingError, "consumer"):
            Consumer().adopt(supervisor.export(lane))
        with self.assertRaisesRegex(ValueError, "cannot be passed on"):
            Consumer().adopt((-1, -1, -1, []))
        # The first consumer gives its lane up to one in a process of its own, which is killed with
        # a frame in its hands.
        for text in (b"first", b"second"):
            send(producer, text)
        numbers = [
            *exported[:3],
            *(part for session in supervisor.export(lane)[3] for part in session),
        ]
        del supervisor
        gc.collect()
        code = """
import sys, throng_ring
memfd, frames, room, session, socket = map(int, sys.argv[1:])
consumer = throng_ring.Consumer()
consumer.adopt((memfd, frames, room, [(session, socket)]))
consumer.peek().release()
held = consumer.peek()
print("holds", bytes(held).decode(), flush=True)
sys.stdin.read()
"""
        child = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, numbers)],
            pass_fds=[*numbers[:3], numbers[4]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(child.stdout.readline(), "holds second\n")
        child.kill()
        child.communicate()
        os.close(numbers[4])

        consumer = Consumer()
        adopted = consumer.adopt(exported)
        send(producer, b"third")
        with consumer.peek() as frame:
            self.assertEqual(
                (bytes(frame), frame.lane), (b"second", adopted), "it was held, and comes again"
            )
        with consumer.peek() as frame:
            self.assertEqual((bytes(frame), frame.sequence), (b"third", 2))


class Processes(unittest.TestCase):
    def read_all(self, consumer):
        n = 0
        while consumer.lanes():
            self.assertTrue(consumer.wait(60), "nothing came for a minute")
            while (frame := consumer.peek()) is not None:
                with frame:
                    self.assertEqual((frame.sequence, frame.stream, frame.user_data), (n, 7, n))
                    self.assertEqual(frame.timestamp_ns, n * 1_000_000_000 // 30)
                    self.assertTrue(bytes(frame) == expected(n), f"bytes of frame {n}")
                n += 1
            while (event := consumer.next_event()) is not None:
                self.assertTrue(event.get("clean", True), event)
        self.assertEqual(n, FRAMES)

    def inherited(self, command):
        consumer = Consumer()
        _, fd = consumer.add_lane(frame_bytes=BYTES, frames=4)
        environment = {**os.environ, "THRONG_RING_FD": str(fd)}
        child = subprocess.Popen(
            [*command, str(FRAMES), str(BYTES)], pass_fds=[fd], env=environment
        )
        os.close(fd)
        self.read_all(consumer)
        self.assertEqual(child.wait(), 0)

    def test_a_python_producer_that_inherits_the_ring(self):
        self.inherited([sys.executable, EXAMPLES / "producer.py"])

    @unittest.skipUnless(
        "THRONG_RING_C_PRODUCER" in os.environ, "THRONG_RING_C_PRODUCER is not set"
    )
    def test_a_c_producer_that_inherits_the_ring(self):
        self.inherited([os.environ["THRONG_RING_C_PRODUCER"]])

    def test_the_examples_find_each_other_by_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/socket"
            consumer = subprocess.Popen(
                [sys.executable, EXAMPLES / "consumer.py", path, str(BYTES)],
                stdout=subprocess.PIPE,
                text=True,
            )
            self.assertEqual(consumer.stdout.readline(), "listening\n")
            subprocess.run(
                [sys.executable, EXAMPLES / "producer.py", str(FRAMES), str(BYTES), path],
                check=True,
            )
            lines = consumer.stdout.read().splitlines()
            consumer.stdout.close()
            self.assertEqual(consumer.wait(), 0)
        sums = [
            f"frame {n} of stream 7: {BYTES} bytes, sum {sum(expected(n))}" for n in range(FRAMES)
        ]
        self.assertEqual(lines, [*sums, f"ended: {FRAMES} delivered, 0 dropped"])


if __name__ == "__main__":
    unittest.main()
