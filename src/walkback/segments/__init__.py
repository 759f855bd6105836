"""Folders of Parquet files of which a description says that they count."""
