"""Who made a file, of which kind it is, and how its code keeps frames."""
