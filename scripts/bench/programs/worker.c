/* The trivial worker: says when it began, then waits to be killed.
 *
 *     worker ARENA SLOT [SECONDS]
 *
 * With SECONDS it is a worker that reports its health: a frame at once, then one every so often.
 * The layout of a slot is written down in arena.py. The start counter is written last: a reader that sees it
 * move finds this incarnation's time and pid beside it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { STARTS, PID, STARTED_NS, SEEN_NS, WORDS = 8 };

static void beat(int seconds)
{
    static const char frame[] = "{\"status\": \"healthy\"}\n";
    const char *channel = getenv("REKINDLE_FD");
    while (channel && write(atoi(channel), frame, sizeof frame - 1) > 0)
        sleep(seconds);
}

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (argc != 3 && argc != 4)
        return 2;

    size_t slot = strtoul(argv[2], NULL, 10);
    size_t bytes = (slot + 1) * WORDS * sizeof(uint64_t);
    int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return 3;
    uint64_t *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (arena == MAP_FAILED)
        return 3;
    close(fd);

    uint64_t *mine = arena + slot * WORDS;
    mine[STARTED_NS] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    mine[PID] = (uint64_t)getpid();
    __atomic_fetch_add(&mine[STARTS], 1, __ATOMIC_RELEASE);

    if (argc == 4)
        beat(atoi(argv[3]));
    for (;;)
        pause();
}
