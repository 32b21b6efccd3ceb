"""Moves the arm to and fro by FollowJointTrajectory, and stops where something touches it.

    ros2 run tangere_ros2 feel_and_move

Needs RMW_IMPLEMENTATION=rmw_cyclonedds_cpp: the action of a virtual arm speaks its kind of services. Not a safety
function.
"""

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tangere_msgs.msg import Touch
from trajectory_msgs.msg import JointTrajectoryPoint

ACTION = "/joint_trajectory_controller/follow_joint_trajectory"
SWING = 0.3  # [rad] of the first joint
SECONDS = 3  # for one way


class FeelAndMove(Node):
    def __init__(self):
        super().__init__("feel_and_move")
        self.names, self.home, self.goal, self.way = [], [], None, 1.0
        self.client = ActionClient(self, FollowJointTrajectory, ACTION)
        self.create_subscription(JointState, "/joint_states", self.on_state, 10)
        self.create_subscription(Touch, "/tangere/touch", self.on_touch, 10)

    def on_state(self, state):
        if self.names:
            return
        self.names, self.home = list(state.name), list(state.position)
        self.client.wait_for_server()
        self.go()

    def go(self):
        point = JointTrajectoryPoint()
        point.positions = [self.home[0] + self.way * SWING, *self.home[1:]]
        point.time_from_start.sec = SECONDS
        goal = FollowJointTrajectory.Goal()
        goal.trajectory.joint_names, goal.trajectory.points = self.names, [point]
        self.client.send_goal_async(goal).add_done_callback(self.on_accepted)

    def on_accepted(self, future):
        self.goal = future.result()
        if self.goal.accepted:
            self.goal.get_result_async().add_done_callback(self.on_done)
        else:
            self.get_logger().error("the arm does not take the goal")

    def on_done(self, future):
        self.get_logger().info(f"ended with status {future.result().status}")
        if future.result().status == 4:  # succeeded: back again
            self.way = -self.way
            self.go()

    def on_touch(self, touch):
        self.get_logger().info(f"{touch.phase}: {touch.kind} at {touch.joint_name}, {touch.torque:.1f} Nm")
        if touch.alarm and touch.phase in ("raised", "changed") and self.goal is not None:
            self.goal.cancel_goal_async()


def main():
    rclpy.init()
    rclpy.spin(FeelAndMove())
