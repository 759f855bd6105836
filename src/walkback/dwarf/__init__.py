"""Call frame information: `.eh_frame` and `.debug_frame`."""
