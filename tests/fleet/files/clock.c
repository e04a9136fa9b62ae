/* Clock of a machine: that of the kernel, changed by the file in CLOCK: seconds that the time of day
   is ahead, seconds by which it and the monotonic clock gain in each second, and since when. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *found) {
    if (syscall(SYS_clock_gettime, clock, found)) return -1;
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return 0;
    char text[128] = "0 0 0", *end;
    const char *path = getenv("CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0 && read(file, text, sizeof text - 1) < 0) text[0] = 0;
    if (file >= 0) close(file);
    double ahead = strtod(text, &end), gain = strtod(end, &end), since = strtod(end, NULL);
    struct timespec up;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &up);
    double more = gain * (up.tv_sec + up.tv_nsec * 1e-9 - since);
    if (clock == CLOCK_REALTIME) more += ahead;
    long long ns = found->tv_sec * 1000000000LL + found->tv_nsec + (long long)(more * 1e9);
    found->tv_sec = ns / 1000000000LL;
    found->tv_nsec = ns % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
