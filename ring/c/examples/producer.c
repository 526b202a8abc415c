/* A producer in C: writes test frames in place. Its consumer may be in any language.
 *
 *   producer FRAMES BYTES          joins through the inherited socket (THRONG_RING_FD)
 *   producer FRAMES BYTES PATH     joins at the consumer's socket path
 *
 *   cc producer.c $(pkg-config --cflags --libs throng-ring) -o producer
 *
 * Byte i of frame n is (31 n + i) mod 251. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "throng_ring.h"

static int failed(const char *doing) {
  fprintf(stderr, "%s: %s\n", doing, throng_ring_error_message());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: producer FRAMES BYTES [PATH]\n");
    return 2;
  }
  uint64_t frames = strtoull(argv[1], NULL, 10);
  size_t bytes = strtoull(argv[2], NULL, 10);

  ThrongRingProducer *producer = NULL;
  ThrongRingStatus status = argc > 3 ? throng_ring_producer_connect(argv[3], &producer)
                                     : throng_ring_producer_join_inherited(&producer);
  if (status != THRONG_RING_STATUS_OK) return failed("joining");

  const uint64_t second_ns = 1000000000;
  if (throng_ring_producer_set_policy(producer, THRONG_RING_POLICY_WAIT, 30 * second_ns) < 0)
    return failed("setting the policy");

  for (uint64_t n = 0; n < frames; n++) {
    ThrongRingFrameInfo info = {
        .timestamp_ns = n * second_ns / 30,
        .user_data = n,
        .stream = 7,
        .flags = n % 30 == 0 ? THRONG_RING_KEYFRAME : 0,
    };
    ThrongRingClaim claim;
    status = throng_ring_producer_claim(producer, bytes, &info, &claim);
    if (status == THRONG_RING_STATUS_DROPPED) continue; /* counted by the library */
    if (status != THRONG_RING_STATUS_OK) return failed("claiming");
    for (size_t i = 0; i < bytes; i++) claim.data[i] = (uint8_t)((31 * n + i) % 251);
    if (throng_ring_producer_commit(producer, claim.id, bytes) < 0) return failed("committing");
  }
  throng_ring_producer_free(producer);
  return 0;
}
