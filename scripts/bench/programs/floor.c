/* The floor: the least that a supervisor can do, and so the time that none can beat.
 *
 *     floor ARENA WORKER COUNT
 *
 * Starts COUNT workers, waits on their pidfds, notes when it sees a death, and starts the next
 * incarnation at once. It decides nothing, remembers nothing and notifies no client. It ends, with all its
 * workers, when its standard input is closed, so it never outlives the benchmark.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STARTS, PID, STARTED_NS, SEEN_NS, WORDS = 8 };
enum { BATCH = 128 };

static const char *arena_path, *worker_path;
static volatile uint64_t *arena;
static size_t count;
static pid_t *pids;
static int *pidfds;
static int poller;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void start(size_t slot)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", slot);
    char *const argv[] = {(char *)worker_path, (char *)arena_path, number, NULL};

    pid_t pid = vfork();
    if (pid == 0) {
        execv(worker_path, argv);
        _exit(127);
    }
    if (pid < 0)
        die("vfork");
    pids[slot] = pid;
    /* The child is ours and not reaped, so its pid cannot have been given away. */
    pidfds[slot] = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfds[slot] < 0)
        die("pidfd_open");
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = slot};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, pidfds[slot], &event) < 0)
        die("epoll_ctl");
}

static void reap(size_t slot)
{
    int status;
    while (waitpid(pids[slot], &status, 0) < 0 && errno == EINTR)
        ;
    /* Closing is not enough: a sibling between its vfork and the end of its exec holds a copy of the
     * descriptor, and as long as it does epoll would report this death again, as the next one's. */
    epoll_ctl(poller, EPOLL_CTL_DEL, pidfds[slot], NULL);
    close(pidfds[slot]);
    if (WIFEXITED(status)) {
        fprintf(stderr, "floor: the worker of slot %zu exited with %d\n", slot, WEXITSTATUS(status));
        exit(1);
    }
}

static void stop_all(void)
{
    for (size_t slot = 0; slot < count; slot++)
        kill(pids[slot], SIGKILL);
    for (size_t slot = 0; slot < count; slot++)
        waitpid(pids[slot], NULL, 0);
}

static void open_arena(void)
{
    int fd = open(arena_path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        die(arena_path);
    arena = mmap(NULL, count * WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (arena == MAP_FAILED)
        die("mmap");
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: floor ARENA WORKER COUNT\n");
        return 2;
    }
    arena_path = argv[1];
    worker_path = argv[2];
    count = strtoul(argv[3], NULL, 10);
    pids = calloc(count, sizeof *pids);
    pidfds = calloc(count, sizeof *pidfds);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (!pids || !pidfds || poller < 0)
        die("setup");
    open_arena();

    struct epoll_event input = {.events = EPOLLIN, .data.u64 = count};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &input) < 0)
        die("standard input");
    for (size_t slot = 0; slot < count; slot++)
        start(slot);

    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(poller, events, BATCH, -1);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            size_t slot = events[i].data.u64;
            if (slot == count) {
                stop_all();
                return 0;
            }
            arena[slot * WORDS + SEEN_NS] = now_ns();
            reap(slot);
            start(slot);
        }
    }
}
