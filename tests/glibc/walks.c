/* Prints the frames of its own stack from several places: what backtrace() says, and built with READER also what the
   GNU C Library's reader of SFrame says, compiled in.  */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef READER
int walk_by_reader (void **frames, int size);
#endif

static char module[256];
static uintptr_t offset;

static int
holds (struct dl_phdr_info *info, size_t size, void *address)
{
  (void) size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    {
      uintptr_t away = (uintptr_t) address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr;
      if (info->dlpi_phdr[i].p_type == PT_LOAD && away < info->dlpi_phdr[i].p_memsz)
        {
          const char *slash = strrchr (info->dlpi_name, '/');
          snprintf (module, sizeof module, "%s", slash ? slash + 1 : info->dlpi_name);
          offset = (uintptr_t) address - info->dlpi_addr;
          return 1;
        }
    }
  return 0;
}

static void
print (const char *who, void **frames, int count)
{
  printf ("%s", who);
  for (int i = 0; i < count; i++)
    {
      strcpy (module, "?");
      offset = 0;
      dl_iterate_phdr (holds, frames[i]);
      printf (" %s+%lx", module[0] ? module : "program", (unsigned long) offset);
    }
  printf ("\n");
  fflush (stdout);
}

__attribute__ ((noinline)) void
report (void)
{
  void *frames[128];
  int count = backtrace (frames, 128);
  /* The first is here; a reader that is called from here has it not.  */
  print ("backtrace", frames + 1, count - 1);
#ifdef READER
  count = walk_by_reader (frames, 128);
  print ("reader", frames, count);
#endif
}

static int reported;

__attribute__ ((noinline)) static int
compare (const void *one, const void *other)
{
  if (!reported++)
    report ();
  return *(const int *) one - *(const int *) other;
}

static volatile int sum;

__attribute__ ((noinline)) static int
deeper (int depth)
{
  char room[depth * 8 + 8];
  memset (room, depth, sizeof room);
  if (depth)
    sum += deeper (depth - 1);
  else
    report ();
  sum += room[depth];
  return sum;
}

static void
handler (int number)
{
  (void) number;
  report ();
  if (number == SIGSEGV)
    _Exit (0);
}

__attribute__ ((noinline)) static int
raising (const void *one, const void *other)
{
  if (!reported++)
    raise (SIGUSR1);
  return *(const int *) one - *(const int *) other;
}

static void *
in_thread (void *work)
{
  ((void (*) (void)) work) ();
  return NULL;
}

static void calls (void) { deeper (6); }
static void sorting (void) { int v[] = { 4, 1, 3, 2 }; qsort (v, 4, sizeof *v, compare); }
static void searching (void) { int v[] = { 1, 2, 3 }, key = 2; bsearch (&key, v, 3, sizeof *v, compare); }
static void raised (void) { raise (SIGUSR1); }
static void sorted_raise (void) { int v[] = { 4, 1, 3, 2 }; qsort (v, 4, sizeof *v, raising); }
static void faulting (void) { *(volatile int *) 8 = 1; }

/* The call is the last instruction of its function, and padding follows, or at once the next function.  */
__attribute__ ((noinline, noreturn)) static void ending (void) { report (); _Exit (0); }
__attribute__ ((noinline, noreturn, aligned (64))) static void gone (void) { ending (); }
__attribute__ ((noinline, aligned (64))) static void going (void) { gone (); }
__attribute__ ((noinline, noreturn, cold)) static void packed (void) { sum++; ending (); }
__attribute__ ((noinline, cold)) static void packing (void) { packed (); }

static void
alternate (void)
{
  static char stack[1 << 16];
  stack_t new = { .ss_sp = stack, .ss_size = sizeof stack };
  struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
  sigaltstack (&new, NULL);
  sigaction (SIGUSR1, &action, NULL);
  raise (SIGUSR1);
}

static void
plugin (void)
{
  void *library = dlopen (getenv ("PLUGIN"), RTLD_NOW);
  if (!library)
    {
      fprintf (stderr, "%s\n", dlerror ());
      exit (1);
    }
  ((void (*) (void (*) (void))) dlsym (library, "call_back")) (report);
}

static void at_exit (void) { atexit (report); exit (0); }
static void once (void) { static pthread_once_t done = PTHREAD_ONCE_INIT; pthread_once (&done, report); }

int
main (int count, char **words)
{
  static const struct { const char *name; void (*work) (void); } all[] = {
    { "calls", calls }, { "qsort", sorting }, { "bsearch", searching }, { "raise", raised },
    { "qsort-raise", sorted_raise }, { "fault", faulting }, { "ending", going }, { "packed", packing },
    { "alternate", alternate }, { "dlopen", plugin }, { "atexit", at_exit }, { "once", once },
  };
  struct sigaction action = { .sa_handler = handler };
  sigaction (SIGUSR1, &action, NULL);
  sigaction (SIGSEGV, &action, NULL);
  for (size_t i = 0; count > 1 && i < sizeof all / sizeof *all; i++)
    if (!strcmp (words[1], all[i].name))
      {
        if (count == 2)
          return all[i].work (), 0;
        pthread_t thread;
        pthread_create (&thread, NULL, in_thread, (void *) all[i].work);
        return pthread_join (thread, NULL);
      }
  return 2;
}
