/* A consumer in C: listens at a socket path for one producer, reads its frames in place, prints a line for each.
 *
 *   consumer PATH BYTES     lanes with room for four frames of BYTES
 *
 *   cc consumer.c $(pkg-config --cflags --libs throng-ring) -o consumer */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "throng_ring.h"

static int failed(const char *doing) {
  fprintf(stderr, "%s: %s\n", doing, throng_ring_error_message());
  return 1;
}

int main(int argc, char **argv) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path) {
    fprintf(stderr, "usage: consumer PATH BYTES\n");
    return 2;
  }
  strcpy(address.sun_path, argv[1]);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0) {
    perror("listening");
    return 1;
  }
  puts("listening");
  fflush(stdout);
  int socket = accept(listener, NULL, NULL);
  if (socket < 0) {
    perror("accepting");
    return 1;
  }

  ThrongRingConsumer *consumer = NULL;
  ThrongRingOptions options = {.frame_bytes = strtoull(argv[2], NULL, 10), .frames = 4};
  if (throng_ring_consumer_new(&consumer) < 0) return failed("making a consumer");
  if (throng_ring_consumer_accept(consumer, socket, &options, NULL) < 0) return failed("making a lane");

  const uint64_t second_ns = 1000000000;
  for (;;) {
    ThrongRingStatus status = throng_ring_consumer_wait(consumer, 60 * second_ns);
    if (status < 0) return failed("waiting");
    if (status == THRONG_RING_STATUS_EMPTY) {
      fprintf(stderr, "nothing came for a minute\n");
      return 1;
    }
    ThrongRingFrame frame;
    while ((status = throng_ring_consumer_peek(consumer, &frame)) == THRONG_RING_STATUS_OK) {
      uint64_t sum = 0;
      for (size_t i = 0; i < frame.len; i++) sum += frame.data[i];
      printf("frame %" PRIu64 " of stream %" PRIu32 ": %zu bytes, sum %" PRIu64 "\n", frame.sequence,
             frame.info.stream, frame.len, sum);
      if (throng_ring_consumer_release(consumer, frame.id) < 0) return failed("releasing");
    }
    if (status < 0) return failed("peeking");
    ThrongRingEvent event;
    while (throng_ring_consumer_next_event(consumer, &event) == THRONG_RING_STATUS_OK) {
      if (event.kind != THRONG_RING_EVENT_KIND_LANE_ENDED) continue;
      printf("ended: %" PRIu64 " delivered, %" PRIu64 " dropped\n", event.delivered_frames, event.dropped_frames);
      throng_ring_consumer_free(consumer);
      unlink(argv[1]);
      return 0;
    }
  }
}
