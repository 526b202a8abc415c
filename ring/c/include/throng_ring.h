/* Media frames between processes without copies: C interface of throng-ring. Linux.
 *
 * Handles are opaque and belong to one thread at a time. Calls answer a ThrongRingStatus: 0 done, positive nothing
 * there, negative an error that throng_ring_error_message() explains. No pointer argument may be NULL unless it says
 * so; one that is gives THRONG_RING_STATUS_NULL_POINTER.
 *
 * Made by cbindgen: do not edit. c/tests/c_interface/header.rs says how to make it anew. */

#ifndef THRONG_RING_H
#define THRONG_RING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// Mark of a frame: decodable without frames before it.
#define THRONG_RING_KEYFRAME 1

// Mark of a frame: no other frame refers to it.
#define THRONG_RING_DISPOSABLE 2

// Mark of a frame: frames of its stream are missing before it. Set by the library after a drop.
#define THRONG_RING_DISCONTINUITY 4

// Mark of a frame: the stream ends with it.
#define THRONG_RING_END_OF_STREAM 8

// Mark of a frame: its producer knows that the content is damaged.
#define THRONG_RING_DAMAGED 16

// What a call came to. Zero is success, positive is "nothing there", negative is an error that
// throng_ring_error_message() explains.
enum ThrongRingStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  THRONG_RING_STATUS_OK = 0,
  // There is no frame, event or room (yet), or the time ran out.
  THRONG_RING_STATUS_EMPTY = 1,
  // The back-pressure policy dropped the frame, and counted it.
  THRONG_RING_STATUS_DROPPED = 2,
  // A pointer argument was NULL.
  THRONG_RING_STATUS_NULL_POINTER = -1,
  // An argument is out of its range.
  THRONG_RING_STATUS_INVALID_ARGUMENT = -2,
  // The system refused something; the message has its error.
  THRONG_RING_STATUS_SYSTEM = -3,
  // What was handed over is no valid ring: no memfd, seals missing, wrong magic, version or size.
  THRONG_RING_STATUS_NOT_A_RING = -4,
  // The frame can never fit, or a commit named more bytes than were claimed.
  THRONG_RING_STATUS_TOO_LARGE = -5,
  // The consumer has gone: join a new one, or end.
  THRONG_RING_STATUS_CONSUMER_GONE = -6,
  // Shared words contradict each other, or the consumer closed the lane because they did.
  THRONG_RING_STATUS_CORRUPT = -7,
  // A frame, claim or lane that is not (or no longer) open.
  THRONG_RING_STATUS_NOT_OPEN = -8,
  // The ring has another consumer, or all its producer rows are taken.
  THRONG_RING_STATUS_IN_USE = -9,
  // A defect of this library, stopped at the border.
  THRONG_RING_STATUS_INTERNAL = -10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongRingStatus ThrongRingStatus;
#else
typedef int32_t ThrongRingStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What happens to a frame when there is no room.
enum ThrongRingPolicy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Wait, and drop it after the timeout.
  THRONG_RING_POLICY_WAIT = 0,
  // Drop it.
  THRONG_RING_POLICY_DROP_NEWEST = 1,
  // Drop the oldest frames of the lane that the consumer does not hold.
  THRONG_RING_POLICY_DROP_OLDEST = 2,
  // Drop it, and then all of its stream until a key frame fits.
  THRONG_RING_POLICY_DROP_UNTIL_KEYFRAME = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongRingPolicy ThrongRingPolicy;
#else
typedef int32_t ThrongRingPolicy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an event says.
enum ThrongRingEventKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // All processes of a session are gone; what they had committed is still delivered.
  THRONG_RING_EVENT_KIND_PRODUCER_LEFT = 0,
  // A producer wrote nonsense over the ring's words. The lane is closed; held frames of it stay valid.
  THRONG_RING_EVENT_KIND_LANE_CORRUPT = 1,
  // Nobody is left on the lane, all of it was released, and its memory is given back.
  THRONG_RING_EVENT_KIND_LANE_ENDED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongRingEventKind ThrongRingEventKind;
#else
typedef int32_t ThrongRingEventKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Reads the frames of all its producers. To be used by one thread at a time.
typedef struct ThrongRingConsumer ThrongRingConsumer;

// A handle that puts frames into a ring. To be used by one thread at a time; throng_ring_producer_clone() makes one
// for another thread.
typedef struct ThrongRingProducer ThrongRingProducer;

// What a producer says about a frame. The ring carries it and looks only at `stream` and the key frame mark.
typedef struct ThrongRingFrameInfo {
  // When it is to be shown or was captured; ns on a clock on which both sides agree.
  uint64_t timestamp_ns;
  // Anything else in a word.
  uint64_t user_data;
  // Which of the producer's streams (track, participant) it belongs to.
  uint32_t stream;
  // What it is, in the application's numbers.
  uint16_t kind;
  // Its marks: THRONG_RING_KEYFRAME and so on, or-ed.
  uint16_t flags;
} ThrongRingFrameInfo;

// Room in the ring to write a frame into, in place.
typedef struct ThrongRingClaim {
  // Where to write: contiguous, aligned to 64 bytes; valid until commit or abort and as long as the producer.
  uint8_t *data;
  // Bytes that may be written there.
  uintptr_t len;
  // Name of the claim, for commit and abort.
  uint64_t id;
} ThrongRingClaim;

// Size of a lane: at least `frames` frames of `frame_bytes` each.
typedef struct ThrongRingOptions {
  // Bytes of a large frame.
  uintptr_t frame_bytes;
  // How many of them fit at a time; three or four for raw video. At least 2.
  uint32_t frames;
  // Non-zero: reserve all memory when the lane is made.
  uint32_t prefault;
  // Non-zero: ask for huge pages on the consumer's side. The system may refuse, and nothing else changes then.
  uint32_t huge_pages;
} ThrongRingOptions;

// A frame that the consumer holds.
typedef struct ThrongRingFrame {
  // Its bytes, in shared memory: contiguous, aligned to 64 bytes, valid until it is released. A hostile producer can
  // still change them: copy what decisions hang on.
  const uint8_t *data;
  // How many bytes.
  uintptr_t len;
  // Name of the frame, for throng_ring_consumer_release().
  uint64_t id;
  // Number within its producer's stream, from 0. Dropped frames count, so that a gap is a loss.
  uint64_t sequence;
  // What the producer said about it.
  struct ThrongRingFrameInfo info;
  // Lane that it came from.
  uint32_t lane;
  // Which of the lane's producer handles committed it.
  uint32_t producer;
} ThrongRingFrame;

// What happened beside frames.
typedef struct ThrongRingEvent {
  // A ThrongRingEventKind, or another number from a later version.
  int32_t kind;
  // The lane.
  uint32_t lane;
  // ProducerLeft: the session within the lane, else 0.
  uint32_t session;
  // ProducerLeft: 1 if its producers were freed, 0 if they died and what they had claimed is put aside.
  uint32_t clean;
  // LaneEnded: frames that were released, else 0.
  uint64_t delivered_frames;
  // LaneEnded: frames that policies dropped, else 0.
  uint64_t dropped_frames;
  // LaneEnded: claims of dead producers that were put aside, else 0.
  uint64_t abandoned_claims;
} ThrongRingEvent;

// What a new consumer needs to go on with a lane. All descriptors are the holder's to close, or to give to
// throng_ring_consumer_adopt().
typedef struct ThrongRingLaneFds {
  // The ring.
  int memfd;
  // The eventfd that wakes the consumer.
  int frame_event;
  // The eventfd that wakes producers.
  int room_event;
  // How many sessions (producer processes) the lane has.
  uint32_t sessions;
} ThrongRingLaneFds;

// The consumer's end of one producer process's handshake socket. As long as somebody holds it, that producer takes the
// consumer for alive.
typedef struct ThrongRingSession {
  // The session's number within the lane.
  uint32_t session;
  // The socket.
  int fd;
} ThrongRingSession;

// What a lane has done since it was made. Each figure is exact; all together are of slightly different moments.
typedef struct ThrongRingStats {
  // Bytes of payload that it holds.
  uint64_t arena_bytes;
  // Bytes of the arena that are claimed, committed or held at the moment.
  uint64_t bytes_in_flight;
  // Frames committed by all producers.
  uint64_t committed_frames;
  // Their payload.
  uint64_t committed_bytes;
  // Claims given up by all producers.
  uint64_t aborted_frames;
  // Frames that the consumer released.
  uint64_t delivered_frames;
  // Their payload.
  uint64_t delivered_bytes;
  // Claims of dead producers that were put aside.
  uint64_t abandoned_claims;
  // Dropped: there was no room, and the policy was to drop the newest.
  uint64_t dropped_full;
  // Dropped: there was no room before the policy's timeout.
  uint64_t dropped_timed_out;
  // Dropped: they were the oldest when another one needed their room.
  uint64_t dropped_evicted;
  // Dropped: a frame of the same stream was dropped before, and these were no key frames.
  uint64_t dropped_until_keyframe;
  // Dropped: the policy was to drop the oldest, but the consumer held it.
  uint64_t dropped_held_by_consumer;
  // Dropped: larger than half the ring.
  uint64_t dropped_too_large;
  // Frames that fit at a time.
  uint32_t descriptors;
  // Frames that are claimed, committed or held at the moment.
  uint32_t frames_in_flight;
  // Consumers so far: 2 after one restart.
  uint32_t consumer_epoch;
  // Process id of the latest consumer, as it sees itself.
  uint32_t consumer_pid;
  // 1 if the consumer gave the lane up because a producer wrote nonsense, else 0.
  uint32_t closed;
  // Producer handles that are open at the moment.
  uint32_t producers;
} ThrongRingStats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What went wrong in this thread's latest call that failed, and what to do about it; "" if none failed. UTF-8. Valid
// until this thread's next failing call.
const char *throng_ring_error_message(void);

// Version of this library, such as "0.1.0". Static.
const char *throng_ring_version(void);

// Joins at a socket path where a consumer accepts.
//
// # Safety
// `path` is a C string, `out` valid for writes.
ThrongRingStatus throng_ring_producer_connect(const char *path, struct ThrongRingProducer **out);

// Joins through a connected Unix socket: the descriptor of an invitation, inherited or received by SCM_RIGHTS. The
// descriptor belongs to the library from here on, also if this fails for another reason than a NULL or a negative
// argument.
//
// # Safety
// `fd` is open and not used elsewhere, `out` valid for writes.
ThrongRingStatus throng_ring_producer_join(int fd,
                                           struct ThrongRingProducer **out);

// Joins through the socket that this process inherited, whose number stands in the environment variable
// THRONG_RING_FD. To be called once.
//
// # Safety
// `out` is valid for writes.
ThrongRingStatus throng_ring_producer_join_inherited(struct ThrongRingProducer **out);

// One more handle on the same lane, for another thread.
//
// # Safety
// `producer` is a handle of this library that no other thread uses, `out` valid for writes.
ThrongRingStatus throng_ring_producer_clone(const struct ThrongRingProducer *producer,
                                            struct ThrongRingProducer **out);

// What happens from here on when there is no room: a ThrongRingPolicy. A new handle drops the newest. `timeout_ns` is
// for Wait; UINT64_MAX is for ever.
//
// # Safety
// `producer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_producer_set_policy(struct ThrongRingProducer *producer,
                                                 int32_t policy,
                                                 uint64_t timeout_ns);

// Bytes of the largest frame that this ring takes: half of it. 0 if `producer` is NULL.
//
// # Safety
// `producer` is NULL or a handle of this library.
uintptr_t throng_ring_producer_frame_bytes_max(const struct ThrongRingProducer *producer);

// Claims room for `len` bytes, to be written in place and then committed or aborted. Dropped if the policy drops it.
// `info` may be NULL: all zeros.
//
// # Safety
// `producer` is a handle of this library that no other thread uses, `info` NULL or valid, `out` valid for writes.
ThrongRingStatus throng_ring_producer_claim(struct ThrongRingProducer *producer,
                                            uintptr_t len,
                                            const struct ThrongRingFrameInfo *info,
                                            struct ThrongRingClaim *out);

// Makes the first `len` bytes of a claim visible to the consumer, and wakes it if it sleeps. `len` may be less than
// was claimed; if it is more, the claim is aborted.
//
// # Safety
// `producer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_producer_commit(struct ThrongRingProducer *producer,
                                             uint64_t claim_id,
                                             uintptr_t len);

// Gives a claim up. The consumer sees a gap in the stream's sequence, and nothing else.
//
// # Safety
// `producer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_producer_abort(struct ThrongRingProducer *producer, uint64_t claim_id);

// Copies a frame into the ring. Dropped if the policy drops it. `info` may be NULL; `data` too if `len` is 0.
//
// # Safety
// `producer` is a handle of this library that no other thread uses, `data` valid for `len` bytes and not within the
// ring, `info` NULL or valid.
ThrongRingStatus throng_ring_producer_send(struct ThrongRingProducer *producer,
                                           const uint8_t *data,
                                           uintptr_t len,
                                           const struct ThrongRingFrameInfo *info);

// For event loops: Ok if a claim of `len` bytes would find room; Empty if not, and then the descriptor of
// throng_ring_producer_room_fd() becomes readable when there may be.
//
// # Safety
// `producer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_producer_poll_room(struct ThrongRingProducer *producer,
                                                uintptr_t len);

// The eventfd of throng_ring_producer_poll_room(); it stays the library's. -1 if `producer` is NULL.
//
// # Safety
// `producer` is NULL or a handle of this library.
int throng_ring_producer_room_fd(const struct ThrongRingProducer *producer);

// Closes a handle; open claims are aborted. NULL is nothing.
//
// # Safety
// `producer` is NULL or a handle of this library that nobody uses any more.
void throng_ring_producer_free(struct ThrongRingProducer *producer);

// A consumer without lanes.
//
// # Safety
// `out` is valid for writes.
ThrongRingStatus throng_ring_consumer_new(struct ThrongRingConsumer **out);

// Makes a lane, and a socket to give to the producer process: inherited (its number in the environment variable
// THRONG_RING_FD, close-on-exec removed) or sent over a socket of the caller's (SCM_RIGHTS). The socket `*fd` is the
// caller's to close, once the producer has it.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `options` valid, `lane` NULL or valid for writes,
// `fd` valid for writes.
ThrongRingStatus throng_ring_consumer_add_lane(struct ThrongRingConsumer *consumer,
                                               const struct ThrongRingOptions *options,
                                               uint32_t *lane,
                                               int *fd);

// Makes a lane for whoever is at the other end of a connected Unix socket (from accept(2)), where
// throng_ring_producer_connect() or _join() is called. The descriptor belongs to the library from here on, also if this
// fails for another reason than a NULL or a negative argument. `lane` may be NULL.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `fd` open and not used elsewhere, `options` valid,
// `lane` NULL or valid for writes.
ThrongRingStatus throng_ring_consumer_accept(struct ThrongRingConsumer *consumer,
                                             int fd,
                                             const struct ThrongRingOptions *options,
                                             uint32_t *lane);

// Sleeps until there may be a frame or an event: Ok; or Empty after `timeout_ns`. No system call if there is something.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_consumer_wait(struct ThrongRingConsumer *consumer,
                                           uint64_t timeout_ns);

// How late frames may be seen, so that while they come faster than that `throng_ring_consumer_wait` takes several at once
// and nobody has to wake it. Lanes need room for what comes meanwhile. 0, as at first: woken for each frame.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_consumer_set_coalescing(struct ThrongRingConsumer *consumer,
                                                     uint64_t most_ns);

// The next frame of any lane: Ok, or Empty. It stays where it is until it is released; any number may be held.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
ThrongRingStatus throng_ring_consumer_peek(struct ThrongRingConsumer *consumer,
                                           struct ThrongRingFrame *out);

// Gives a frame back, in any order. Its bytes are not to be read after this.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_consumer_release(struct ThrongRingConsumer *consumer,
                                              uint64_t frame_id);

// The next event: Ok, or Empty. Ended lanes are cleaned up here, so call it now and then.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
ThrongRingStatus throng_ring_consumer_next_event(struct ThrongRingConsumer *consumer,
                                                 struct ThrongRingEvent *out);

// For event loops: Ok if throng_ring_consumer_event_fd() becomes readable with the next frame or event; Empty, and
// nothing is armed, if there is something already.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_consumer_arm(struct ThrongRingConsumer *consumer);

// The descriptor to poll for reading after throng_ring_consumer_arm(); it stays the library's. -1 if NULL.
//
// # Safety
// `consumer` is NULL or a handle of this library.
int throng_ring_consumer_event_fd(const struct ThrongRingConsumer *consumer);

// To be called after the descriptor became readable; then peek.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses.
ThrongRingStatus throng_ring_consumer_process_events(struct ThrongRingConsumer *consumer);

// Closes a consumer and its lanes; frames that it held are not to be read any more. NULL is nothing.
//
// # Safety
// `consumer` is NULL or a handle of this library that nobody uses any more.
void throng_ring_consumer_free(struct ThrongRingConsumer *consumer);

// Invites one more process to an existing lane; the socket `*fd` is to be handed on as that of
// throng_ring_consumer_add_lane(). Processes of a lane share memory and fate: one that writes wildly can spoil the
// others' frames there, which a lane of its own could not.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `fd` valid for writes.
ThrongRingStatus throng_ring_consumer_invite(struct ThrongRingConsumer *consumer,
                                             uint32_t lane,
                                             int *fd);

// Copies a lane's descriptors, for a supervisor that starts a new consumer should this one die: `*out`, and its
// sessions into the array `sessions` of `capacity` places. InvalidArgument if that is too short: nothing is copied
// then, and `out->sessions` says how many there are.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `out` valid for writes, `sessions` valid for
// `capacity` writes, or NULL if that is 0.
ThrongRingStatus throng_ring_consumer_export(const struct ThrongRingConsumer *consumer,
                                             uint32_t lane,
                                             struct ThrongRingLaneFds *out,
                                             struct ThrongRingSession *sessions,
                                             uintptr_t capacity);

// Goes on where the dead consumer of a lane stopped: `fds` and their `fds->sessions` places of `sessions`, from
// throng_ring_consumer_export(). Frames that it had peeked and not released come again. InUse if that consumer lives.
// The descriptors belong to the library from here on, also if this fails for another reason than a NULL or a negative
// argument. `lane` may be NULL.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `fds` valid, `sessions` valid for reads of so many,
// or NULL if there are none, all descriptors open and not used elsewhere, `lane` NULL or valid for writes.
ThrongRingStatus throng_ring_consumer_adopt(struct ThrongRingConsumer *consumer,
                                            const struct ThrongRingLaneFds *fds,
                                            const struct ThrongRingSession *sessions,
                                            uint32_t *lane);

// What a lane of this consumer has done.
//
// # Safety
// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
ThrongRingStatus throng_ring_consumer_stats(const struct ThrongRingConsumer *consumer,
                                            uint32_t lane,
                                            struct ThrongRingStats *out);

// What the lane behind a path such as /proc/PID/fd/N has done: for a third process, which neither side notices.
//
// # Safety
// `path` is a C string, `out` valid for writes.
ThrongRingStatus throng_ring_stats_open(const char *path,
                                        struct ThrongRingStats *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* THRONG_RING_H */
