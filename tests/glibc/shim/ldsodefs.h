/* What the reader wants of the C library's inside: finding the SFrame of the module that an address is in.  */
#include <stddef.h>
#include <string.h>

#define DLFO_FLAG_SFRAME 1
#define dl_find_object found_object
struct found_object
{
  unsigned long dlfo_flags;
  void *dlfo_sframe;
};
int find_object (void *address, struct found_object *result);
#define GLRO(name) find_object
