/* The peer of the benchmarks: the same work by the interface of libsframe.

     libsframe visit SECTION ROUNDS        decode, and read CFA, FP and RA of every row
     libsframe find SECTION ROUNDS PCS     look up each of the 64-bit numbers in the file PCS

   Prints the nanoseconds of the fastest round, how many rows were read or found, and the sum of their CFA offsets.  */

#include <sframe-api.h>
#include <sframe.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct answer
{
  uint64_t rows;
  int64_t cfa;
  int64_t others;
};

static int64_t
now (void)
{
  struct timespec time;
  clock_gettime (CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C (1000000000) + time.tv_nsec;
}

static char *
contents (const char *path, size_t *size)
{
  FILE *file = fopen (path, "rb");
  if (!file)
    exit (2);
  fseek (file, 0, SEEK_END);
  *size = ftell (file);
  rewind (file);
  char *bytes = malloc (*size);
  if (fread (bytes, 1, *size, file) != *size)
    exit (2);
  fclose (file);
  return bytes;
}

static sframe_decoder_ctx *
decode (const char *bytes, size_t size)
{
  int error = 0;
  sframe_decoder_ctx *context = sframe_decode (bytes, size, &error);
  if (!context)
    {
      fprintf (stderr, "libsframe: %s\n", sframe_errmsg (error));
      exit (3);
    }
  return context;
}

static void
read_row (const sframe_decoder_ctx *context, const sframe_frame_row_entry *row, uint32_t type, struct answer *answer)
{
  int error = 0;
  answer->rows++;
  answer->cfa += sframe_fre_get_cfa_offset (context, row, type, &error);
  answer->others += sframe_fre_get_fp_offset (context, row, type, &error);
  answer->others += sframe_fre_get_ra_offset (context, row, type, &error);
}

static struct answer
visit (const char *bytes, size_t size)
{
  struct answer answer = { 0 };
  sframe_decoder_ctx *context = decode (bytes, size);
  uint32_t functions = sframe_decoder_get_num_fidx (context);
  int version = sframe_decoder_get_version (context);
  for (uint32_t f = 0; f < functions; f++)
    {
      uint32_t rows = 0, length;
      unsigned char info, info2 = 0;
      uint8_t block;
      int32_t start;
      int64_t start_pc;
      if (version == SFRAME_VERSION_3)
	sframe_decoder_get_funcdesc_v3 (context, f, &rows, &length, &start_pc, &info, &info2, &block);
      else
	sframe_decoder_get_funcdesc_v2 (context, f, &rows, &length, &start, &info, &block);
      for (uint32_t r = 0; r < rows; r++)
	{
	  sframe_frame_row_entry row;
	  if (sframe_decoder_get_fre (context, f, r, &row) == 0)
	    read_row (context, &row, SFRAME_V3_FDE_TYPE (info2), &answer);
	}
    }
  sframe_decoder_free (&context);
  return answer;
}

static struct answer
find (const sframe_decoder_ctx *context, const int64_t *pcs, size_t count)
{
  struct answer answer = { 0 };
  for (size_t i = 0; i < count; i++)
    {
      sframe_frame_row_entry row;
      int error;
      if (sframe_find_fre (context, pcs[i], &row) == 0)
	{
	  answer.rows++;
	  answer.cfa += sframe_fre_get_cfa_offset (context, &row, SFRAME_FDE_TYPE_DEFAULT, &error);
	}
    }
  return answer;
}

int
main (int argc, char **argv)
{
  size_t size, pcs_size = 0;
  if (argc < 4)
    return 2;
  char *bytes = contents (argv[2], &size);
  int64_t *pcs = argc > 4 ? (int64_t *) contents (argv[4], &pcs_size) : NULL;
  sframe_decoder_ctx *context = pcs ? decode (bytes, size) : NULL;
  struct answer answer = { 0 };
  int64_t fastest = INT64_MAX;
  for (int round = atoi (argv[3]); round > 0; round--)
    {
      int64_t start = now ();
      answer = pcs ? find (context, pcs, pcs_size / sizeof *pcs) : visit (bytes, size);
      int64_t spent = now () - start;
      if (spent < fastest)
	fastest = spent;
    }
  printf ("%lld %llu %lld %lld\n", (long long) fastest, (unsigned long long) answer.rows, (long long) answer.cfa,
	  (long long) answer.others);
  return 0;
}
