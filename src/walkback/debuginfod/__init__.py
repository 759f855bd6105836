"""Files by build ID from servers of debuginfod, for those who named servers in their environment."""
