"""A virtual arm, and the node that feels in anybody's joint states instead.

    ros2 launch tangere_ros2 virtual_arm.launch.py robot:=ur5e
    ros2 launch tangere_ros2 virtual_arm.launch.py robot:=ur5e real:=true     /joint_states of a real arm's driver

`tangere` must be on the path: pip install 'tangere[ros2,sim]'.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.conditions import IfCondition, UnlessCondition
from launch.substitutions import LaunchConfiguration


def generate_launch_description():
    robot, real, interface = (LaunchConfiguration(name) for name in ("robot", "real", "interface"))
    return LaunchDescription([
        DeclareLaunchArgument("robot", default_value="ur5e", description="the arm, see `tangere models`"),
        DeclareLaunchArgument("real", default_value="false", description="only watch: a driver publishes joint states"),
        DeclareLaunchArgument("interface", default_value="lo", description="lo, all, or a network interface"),
        ExecuteProcess(
            cmd=["tangere", "virtual", robot, "--ros2", "--interface", interface],
            condition=UnlessCondition(real), output="screen",
        ),
        ExecuteProcess(
            cmd=["tangere", "ros2", "watch", "--robot", robot, "--interface", interface],
            condition=IfCondition(real), output="screen",
        ),
    ])  # fmt: skip
