"""SFrame sections made, proved, installed in files, linked and measured."""
