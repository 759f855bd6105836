/* What libsframe reads in a section: for every function its start, then every row.

     reader SECTION ADDRESS

   SECTION is a file of raw bytes, ADDRESS where they are loaded.  Prints `function START SIZE`, then for each row
   `row OFFSET BASE CFA RA FP`; what a row does not say is `-`.  */

#include <sframe-api.h>
#include <sframe.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SFRAME_VERSION_3
#define TYPED(type) , type
#else
#define TYPED(type)
#endif

static void
print_offset (int32_t offset, int error)
{
  if (error)
    printf (" -");
  else
    printf (" %d", offset);
}

static void
print_rows (sframe_decoder_ctx *context, uint32_t function, uint32_t rows, uint32_t type)
{
  (void) type;
  for (uint32_t number = 0; number < rows; number++)
    {
      sframe_frame_row_entry row;
      int error = 0;
      if (sframe_decoder_get_fre (context, function, number, &row))
	exit (4);
      printf ("row %u %d", row.fre_start_addr, sframe_fre_get_base_reg_id (&row, &error));
      int32_t cfa = sframe_fre_get_cfa_offset (context, &row TYPED (type), &error);
      print_offset (cfa, error);
      error = 0;
      int32_t ra = sframe_fre_get_ra_offset (context, &row TYPED (type), &error);
      print_offset (ra, error);
      error = 0;
      int32_t fp = sframe_fre_get_fp_offset (context, &row TYPED (type), &error);
      print_offset (fp, error);
      putchar ('\n');
    }
}

int
main (int count, char **words)
{
  static char bytes[1 << 24];
  if (count != 3)
    return 2;
  size_t size = fread (bytes, 1, sizeof bytes, fopen (words[1], "rb"));
  uint64_t address = strtoull (words[2], NULL, 0);
  int error = 0;
  sframe_decoder_ctx *context = sframe_decode (bytes, size, &error);
  if (!context)
    return puts (sframe_errmsg (error)), 3;
  for (uint32_t number = 0; number < sframe_decoder_get_num_fidx (context); number++)
    {
      uint32_t rows, length, type = 0;
      unsigned char info;
      uint8_t block;
      uint64_t start = address;
#ifdef SFRAME_VERSION_3
      if (sframe_decoder_get_flags (context) & SFRAME_F_FDE_FUNC_START_PCREL)
	start += sframe_decoder_get_offsetof_fde_start_addr (context, number, &error);
      if (sframe_decoder_get_version (context) == SFRAME_VERSION_3)
	{
	  unsigned char info2;
	  int64_t stored;
	  sframe_decoder_get_funcdesc_v3 (context, number, &rows, &length, &stored, &info, &info2, &block);
	  type = SFRAME_V3_FDE_TYPE (info2);
	  start += stored;
	}
      else
#endif
	{
	  int32_t stored;
	  sframe_decoder_get_funcdesc_v2 (context, number, &rows, &length, &stored, &info, &block);
	  start += (int64_t) stored;
	}
      printf ("function %#llx %u\n", (unsigned long long) start, length);
      print_rows (context, number, rows, type);
    }
  return 0;
}
