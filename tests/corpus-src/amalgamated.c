/* A large real source: the single-file libraries of stb (Debian's libstb-dev), each whole. */

#define STB_DS_IMPLEMENTATION
#define STB_DXT_IMPLEMENTATION
#define STB_HEXWAVE_IMPLEMENTATION
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_RECT_PACK_IMPLEMENTATION
#define STB_SPRINTF_IMPLEMENTATION
#define STB_TRUETYPE_IMPLEMENTATION
#include <stb/stb_ds.h>
#include <stb/stb_dxt.h>
#include <stb/stb_hexwave.h>
#include <stb/stb_image.h>
#include <stb/stb_image_resize.h>
#include <stb/stb_image_write.h>
#include <stb/stb_rect_pack.h>
#include <stb/stb_sprintf.h>
#include <stb/stb_truetype.h>
#include <stb/stb_vorbis.h>
