"""ROS 2 without installing ROS 2: nodes, topics, services and an action on Cyclone DDS."""
