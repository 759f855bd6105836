"""Instructions of AArch64, a module for each group of encodings, as Arm's manual has them (C4 of DDI 0487)."""
