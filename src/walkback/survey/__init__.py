"""What SFrame would cost and cover over thousands of files, kept as tables that anyone can query."""
