"""Who made a file, what kind of file it is, and how its code keeps frames."""
