"""`python -m walkback` is the command `walkback`."""

from walkback.cli import main

main()
