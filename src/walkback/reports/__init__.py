"""What people look at: pages made of a survey, or of one binary."""
