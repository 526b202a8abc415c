"""A consumer in Python: listens at a socket path for one producer, in any language, and reads its
frames in place.

    python consumer.py PATH FRAME_BYTES
"""

import os
import socket
import sys

import throng_ring


def main(path, frame_bytes):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        print("listening", flush=True)
        connection, _ = listener.accept()
    os.unlink(path)

    consumer = throng_ring.Consumer()
    consumer.accept(connection.detach(), frame_bytes=frame_bytes, frames=4)
    while consumer.lanes():
        if not consumer.wait(timeout=60):
            sys.exit("nothing came for a minute")
        while (frame := consumer.peek()) is not None:
            with frame, memoryview(frame) as view:  # np.frombuffer(frame, np.uint8) works as well
                of = f"frame {frame.sequence} of stream {frame.stream}"
                print(f"{of}: {len(view)} bytes, sum {sum(view)}")
        while (event := consumer.next_event()) is not None:
            if event["event"] == "lane_ended":
                delivered, dropped = event["delivered_frames"], event["dropped_frames"]
                print(f"ended: {delivered} delivered, {dropped} dropped")


main(sys.argv[1], int(sys.argv[2]))
