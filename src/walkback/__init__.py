"""walkback: the toolkit for stack-trace tables."""
