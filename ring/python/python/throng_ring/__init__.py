"""Media frames between processes without copies: one consumer reads many producers through shared
memory."""

import asyncio

from ._native import Claim, Consumer, Frame, Producer, RingError

KEYFRAME = 1
DISPOSABLE = 2
DISCONTINUITY = 4
END_OF_STREAM = 8
DAMAGED = 16

__all__ = [
    "Claim", "Consumer", "Frame", "Producer", "RingError", "frames",
    "KEYFRAME", "DISPOSABLE", "DISCONTINUITY", "END_OF_STREAM", "DAMAGED",
]


async def frames(consumer):
    """Frames of a consumer as they come, in an asyncio loop; ends when all lanes have ended.

    A frame is released when the loop continues with the next, unless a view of it is still open.
    """
    loop = asyncio.get_running_loop()
    while True:
        while (frame := consumer.peek()) is not None:
            with frame:
                yield frame
        while consumer.next_event() is not None:
            pass
        if not consumer.lanes():
            return
        if not consumer.arm():
            continue
        readable = loop.create_future()
        loop.add_reader(consumer.fileno(), lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(consumer.fileno())
        consumer.process_events()
