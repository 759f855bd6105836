/* Takes the place of syscall(2) as Python calls it: a kernel that knows nothing of build IDs in perf_event_attr, which
   5.11 did not, and as it was before 5.3 nothing of pidfd_open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...) {
    static long (*real)(long, ...);
    long words[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) words[i] = va_arg(list, long);
    va_end(list);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if ((number == SYS_perf_event_open && ((struct perf_event_attr *)words[0])->build_id) || number == SYS_pidfd_open) {
        errno = number == SYS_pidfd_open ? ENOSYS : EINVAL;
        return -1;
    }
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
