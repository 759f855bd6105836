"""Folders of Parquet files; each counts only if it has a description."""
