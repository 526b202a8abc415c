// A program whose truth is known: of every ten rounds burn_long takes seven and burn_short three, at one cost each.
// It works for about two seconds of CPU time when a byte comes, answers a byte, and ends with its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20000 };
static volatile unsigned long sink;

#define BURN(name) \
    __attribute__((noinline)) void name(int length) { \
        unsigned long x = sink; \
        for (int i = 0; i < length; i++) x = x * 6364136223846793005UL + 1; \
        sink = x; \
    }
BURN(burn_long)
BURN(burn_short)

__attribute__((noinline)) void share(void) {
    // Rounds of one length would come in step with the sampling clock on some machine, which then sees one part only.
    static _Thread_local unsigned random = 1;
    random = random * 1664525 + 1013904223;
    int length = 4000 + (random >> 19);
    for (int i = 0; i < 10; i++) {
        if (i < 7) burn_long(length);
        else burn_short(length);
    }
    sink++;
}

__attribute__((noinline)) void work(int rounds) {
    for (int i = 0; i < rounds; i++) share();
    sink++;
}

// How many times its rounds a worker works: states are looked at 20 times a second, so that takes seconds.
static int times = 1;

static void *worker(void *name) {
    prctl(PR_SET_NAME, name);
    work(ROUNDS / 2 * times);
    return 0;
}

static void *idle(void *unused) {
    prctl(PR_SET_NAME, "idle");
    for (;;) pause();
    return unused;
}

static void forks(char *program) {
    for (int i = 0; i < 20; i++) {
        // A child runs this program anew, and its own child works for a moment.
        if (!fork()) {
            execl(program, program, "brief", (char *)0);
            _exit(9);
        }
        wait(0);
    }
}

static void brief(void) {
    if (!fork()) {
        work(ROUNDS / 40);
        _exit(0);
    }
    wait(0);
}

static void copy(void) {
    char *from = malloc(1 << 20), *into = malloc(1 << 20);
    memset(from, 1, 1 << 20);
    for (int i = 0; i < 20000; i++) {
        memcpy(into, from, 1 << 20);
        sink += into[sink & 1023];
    }
}

// Machine code in memory without a file: counts its argument down to zero.
static void jit(void) {
#if defined(__x86_64__)
    static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; // dec rdi; jnz -5; ret
#elif defined(__aarch64__)
    static const unsigned char code[] = {0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6};
#endif
    char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + 64, code, sizeof code);
    __builtin___clear_cache(page, page + 4096);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx LazyCompile:*spin server.js:7\n", (unsigned long)(page + 64), sizeof code);
    fclose(map);
    ((void (*)(unsigned long))(page + 64))(1500000000UL);
}

static void threads(void) {
    pthread_t a, b, t;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (int i = 0; i < 500; i++) pthread_create(&t, &small, idle, 0);
    pthread_create(&a, 0, worker, "worker-a");
    pthread_create(&b, 0, worker, "worker-b");
    pthread_join(a, 0);
    pthread_join(b, 0);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "plain";
    if (!strcmp(how, "brief")) {
        brief();
        return 0;
    }
    char byte;
    if (read(0, &byte, 1) != 1) return 2;
    if (!strcmp(how, "forks")) forks(arguments[0]);
    else if (!strcmp(how, "copy")) copy();
    else if (!strcmp(how, "jit")) jit();
    else if (!strcmp(how, "threads")) threads();
    else if (!strcmp(how, "threads-long")) times = 3, threads();
    else work(ROUNDS);
    if (write(1, &byte, 1) != 1) return 3;
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
