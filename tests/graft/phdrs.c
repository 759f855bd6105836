/* Finds the segments of type PT_GNU_SFRAME the way an unwinder does, and prints for each its size and a sum of its
   bytes as they are in memory. The rest is there so that the linker makes all kinds of segments.  */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int local = 7;
static char zeros[300000];

static int
visit (struct dl_phdr_info *info, size_t size, void *data)
{
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == 0x6474e554)
      {
        const unsigned char *bytes = (const void *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        unsigned sum = 0;
        for (size_t k = 0; k < info->dlpi_phdr[i].p_memsz; k++)
          sum = sum * 31 + bytes[k];
        printf ("%zu %u\n", (size_t) info->dlpi_phdr[i].p_memsz, sum);
        ++*(int *) data;
      }
  return 0;
}

int
main (int argc, char **argv)
{
  int count = 0;
  dl_iterate_phdr (visit, &count);
  memset (zeros, argc, sizeof zeros);
  char *heap = malloc (3000000);
  memset (heap, 1, 3000000);
  printf ("%d %d %d %s\n", count, local, zeros[sizeof zeros - 1], getenv ("GRAFT") ? "named" : "unnamed");
  return 0;
}
