/* Walks its own stack by the SFrame sections that are loaded with it, read by libsframe, and beside that by backtrace of
   the C library.  Prints "table OBJECT FUNCTIONS" for each section found in memory, and for each of several places
   deep in calls "PLACE backtrace OBJECT+OFFSET..." and "PLACE sframe OBJECT+OFFSET...", return addresses outwards.  */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sframe-api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PT_GNU_SFRAME 0x6474e554
#define NOT_INLINED __attribute__ ((noipa))
#define MOST 64

/* The sections.  */

struct table
{
  uint64_t address;
  sframe_decoder_ctx *context;
};

static struct table tables[8];
static int table_count;

/* How long a section is, by its own header.  */
static size_t
length (const char *bytes)
{
  sframe_header header;
  memcpy (&header, bytes, sizeof header);
  size_t index = header.sfh_fdeoff + header.sfh_num_fdes * sizeof (sframe_func_desc_idx_v3);
  size_t rows = header.sfh_freoff + header.sfh_fre_len;
  return sizeof header + header.sfh_auxhdr_len + (index > rows ? index : rows);
}

static int
visit (struct dl_phdr_info *info, size_t size, void *data)
{
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_SFRAME)
      {
	int error = 0;
	const char *bytes = (const char *) info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	sframe_decoder_ctx *context = sframe_decode (bytes, length (bytes), &error);
	if (!context)
	  {
	    printf ("%s: %s\n", info->dlpi_name, sframe_errmsg (error));
	    exit (3);
	  }
	const char *object = *info->dlpi_name ? basename (info->dlpi_name) : "walk";
	printf ("table %s %u\n", object, sframe_decoder_get_num_fidx (context));
	tables[table_count++] = (struct table) { (uint64_t) bytes, context };
      }
  return 0;
}

/* The walk.  */

struct frame
{
  uint64_t pc, sp, fp;
  bool exact;	/* The pc is that of the next instruction, not one behind a call.  */
};

struct function
{
  const struct table *table;
  uint32_t type;
  bool signal;
};

/* The function that holds an address.  */
static bool
find_function (uint64_t pc, struct function *found)
{
  for (const struct table *table = tables; table < tables + table_count; table++)
    for (uint32_t i = 0; i < sframe_decoder_get_num_fidx (table->context); i++)
      {
	int error = 0;
	uint32_t rows, size;
	int64_t start;
	unsigned char info, info2;
	uint8_t block;
	sframe_decoder_get_funcdesc_v3 (table->context, i, &rows, &size, &start, &info, &info2, &block);
	start += table->address + sframe_decoder_get_offsetof_fde_start_addr (table->context, i, &error);
	if (pc - start < size)
	  {
	    *found = (struct function) { table, SFRAME_V3_FDE_TYPE (info2), SFRAME_V3_FDE_SIGNAL_P (info) };
	    return true;
	  }
      }
  return false;
}

/* A word of a row, with its sign.  */
static int32_t
word (const sframe_frame_row_entry *row, int index)
{
  int error = 0;
  uint32_t value = sframe_get_fre_udata (row, index, &error);
  int size = SFRAME_V3_FRE_DATAWORD_SIZE (row->fre_info);
  return size == SFRAME_FRE_DATAWORD_1B ? (int8_t) value : size == SFRAME_FRE_DATAWORD_2B ? (int16_t) value : value;
}

/* Works out the next rule of a flex row, if the row has it and it is more than padding.  */
static bool
flex (const sframe_frame_row_entry *row, int *index, const struct frame *frame, uint64_t cfa, uint64_t *value)
{
  if (*index >= SFRAME_V3_FRE_DATAWORD_COUNT (row->fre_info))
    return false;
  uint32_t control = word (row, (*index)++);
  if (!control)
    return false;
  int number = SFRAME_V3_FLEX_FDE_CTRLWORD_REGNUM (control);
  if (SFRAME_V3_FLEX_FDE_CTRLWORD_REG_P (control) && number != 6 && number != 7)
    {
      printf ("a walk does not know register %d\n", number);
      exit (3);
    }
  uint64_t base = !SFRAME_V3_FLEX_FDE_CTRLWORD_REG_P (control) ? cfa : number == 6 ? frame->fp : frame->sp;
  *value = base + word (row, (*index)++);
  if (SFRAME_V3_FLEX_FDE_CTRLWORD_DEREF_P (control))
    *value = *(uint64_t *) *value;
  return true;
}

/* Goes to the caller's frame; false if this is the outermost, or one that no table has.  */
static bool
step (struct frame *frame)
{
  struct function function;
  sframe_frame_row_entry row;
  int error = 0;
  uint64_t pc = frame->pc - !frame->exact;
  if (!find_function (pc, &function))
    return false;
  const sframe_decoder_ctx *context = function.table->context;
  if (sframe_find_fre (context, pc - function.table->address, &row)
      || sframe_fre_get_ra_undefined_p (context, &row, &error))
    return false;
  uint64_t cfa = 0, fp = frame->fp, ra = 0;
  if (function.type == SFRAME_FDE_TYPE_FLEX)
    {
      int index = 0;
      flex (&row, &index, frame, 0, &cfa);
      if (!flex (&row, &index, frame, cfa, &ra))
	ra = *(uint64_t *) (cfa + sframe_decoder_get_fixed_ra_offset (context));
      flex (&row, &index, frame, cfa, &fp);
    }
  else
    {
      cfa = sframe_fre_get_base_reg_id (&row, &error) == SFRAME_BASE_REG_FP ? frame->fp : frame->sp;
      cfa += sframe_fre_get_cfa_offset (context, &row, function.type, &error);
      ra = *(uint64_t *) (cfa + sframe_fre_get_ra_offset (context, &row, function.type, &error));
      int32_t offset = sframe_fre_get_fp_offset (context, &row, function.type, &error);
      if (!error)
	fp = *(uint64_t *) (cfa + offset);
    }
  *frame = (struct frame) { ra, cfa, fp, function.signal };
  return true;
}

/* The return addresses from the caller on.  */
static NOT_INLINED int
walk (void **found, int most)
{
  struct frame frame = { .exact = true };
  asm volatile ("lea 0f(%%rip), %0\n0:\tmov %%rsp, %1\n\tmov %%rbp, %2"
		: "=&r" (frame.pc), "=&r" (frame.sp), "=&r" (frame.fp));
  int count = 0;
  while (count < most && step (&frame))
    found[count++] = (void *) frame.pc;
  return count;
}

static void
print (const char *place, const char *who, void **found, int count)
{
  printf ("%s %s", place, who);
  for (int i = 1; i < count; i++)	/* The first is in the function that asks.  */
    {
      Dl_info info = { "?" };
      dladdr (found[i], &info);
      printf (" %s+%#lx", basename (info.dli_fname), (long) ((char *) found[i] - (char *) info.dli_fbase));
    }
  printf ("\n");
}

static NOT_INLINED void
report (const char *place)
{
  void *theirs[MOST], *ours[MOST];
  int their_count = backtrace (theirs, MOST);
  int our_count = walk (ours, MOST);
  print (place, "backtrace", theirs, their_count);
  print (place, "sframe", ours, our_count);
}

/* Frames of several kinds.  */

static volatile int used;

static NOT_INLINED void
with_saved_registers (const char *place, long a, long b, long c, long d)
{
  report (place);
  used += a * b + c * d;
}

static NOT_INLINED void
with_big_frame (const char *place)
{
  volatile char bytes[100000];
  bytes[used & 7] = 1;
  with_saved_registers (place, used, bytes[0], bytes[1], bytes[2]);
  used += bytes[3];
}

static NOT_INLINED void
with_alloca (const char *place, void (*inner) (const char *))
{
  char *bytes = alloca (100 + strlen (place));
  strcpy (bytes, place);
  inner (bytes);
  used += bytes[0];
}

static NOT_INLINED void
realigned (const char *place, void (*inner) (const char *))
{
  char aligned[128] __attribute__ ((aligned (128)));
  char *bytes = alloca (strlen (place));
  memset (aligned, used, sizeof aligned);
  memset (bytes, used, strlen (place));
  with_alloca (place, inner);
  used += aligned[used & 7] + bytes[0];
}

static NOT_INLINED void
recurses (int depth, const char *place)
{
  if (depth)
    recurses (depth - 1, place);
  else
    realigned (place, with_big_frame);
  used++;
}

static NOT_INLINED int
compare (const void *one, const void *other)
{
  if (!used++)
    with_alloca ("qsort", with_big_frame);
  return *(const int *) one - *(const int *) other;
}

static NOT_INLINED void
sorts (const char *place)
{
  int numbers[] = { 5, 2, 9, 1, 7, 3 };
  used = 0;
  qsort (numbers, 6, sizeof numbers[0], compare);
  used += numbers[2];
}

static void
handle (int number, siginfo_t *info, void *context)
{
  with_alloca (number == SIGILL ? "fault" : "raise", with_big_frame);
  if (number == SIGILL)
    ((ucontext_t *) context)->uc_mcontext.gregs[REG_RIP] += 2;	/* Behind the ud2.  */
  used++;
}

/* The first instruction faults: one byte before it is no part of the function.  */
static NOT_INLINED void
faults (const char *place)
{
  asm volatile ("ud2");
}

static NOT_INLINED void
raises (const char *place)
{
  raise (SIGUSR1);
  used++;
}

int
main (void)
{
  dl_iterate_phdr (visit, NULL);
  struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
  sigaction (SIGUSR1, &action, NULL);
  sigaction (SIGILL, &action, NULL);
  recurses (5, "calls");
  realigned ("", sorts);
  realigned ("", raises);
  realigned ("", faults);
  return 0;
}
