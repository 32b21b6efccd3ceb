"""Examples of Tangere with rclpy."""
