/* Finds modules for the reader, and starts it as backtrace() of the C library does.  */
#include <link.h>
#include <stdint.h>
#include <ldsodefs.h>
#include <sframe-read.h>

#define PT_GNU_SFRAME 0x6474e554

struct asked
{
  uintptr_t address;
  struct found_object *result;
};

static int
look (struct dl_phdr_info *info, size_t size, void *data)
{
  struct asked *asked = data;
  void *sframe = NULL;
  int inside = 0;
  (void) size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    {
      const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
      uintptr_t start = info->dlpi_addr + segment->p_vaddr;
      inside |= segment->p_type == PT_LOAD && asked->address - start < segment->p_memsz;
      if (segment->p_type == PT_GNU_SFRAME)
        sframe = (void *) start;
    }
  if (!inside)
    return 0;
  asked->result->dlfo_sframe = sframe;
  asked->result->dlfo_flags = sframe ? DLFO_FLAG_SFRAME : 0;
  return 1;
}

int
find_object (void *address, struct found_object *result)
{
  struct asked asked = { (uintptr_t) address, result };
  return dl_iterate_phdr (look, &asked) ? 0 : -1;
}

__attribute__ ((noinline)) int
walk_by_reader (void **frames, int size)
{
  frame frame;
  frame.pc = __getPC ();
  frame.sp = __getSP ();
  frame.fp = (_Unwind_Ptr) __builtin_frame_address (0);
  int count = __stacktrace_sframe (frames, size, &frame);
  /* The first is in the caller.  */
  for (int i = 0; i + 1 < count; i++)
    frames[i] = frames[i + 1];
  return count ? count - 1 : 0;
}
