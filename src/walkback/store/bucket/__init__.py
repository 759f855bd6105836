"""Stores in the buckets of object storage."""
