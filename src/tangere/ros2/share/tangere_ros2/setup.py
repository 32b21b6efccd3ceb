"""A package of ROS 2 in Python."""

from glob import glob

from setuptools import setup

name = "tangere_ros2"
setup(
    name=name,
    version="0.1.0",
    packages=[name],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{name}"]),
        (f"share/{name}", ["package.xml"]),
        (f"share/{name}/launch", glob("launch/*.py")),
        (f"share/{name}/description", glob("description/*")),
        (f"share/{name}/config", glob("config/*")),
    ],
    install_requires=["setuptools"],
    maintainer="The Tangere authors",
    maintainer_email="tangere@example.org",
    description="A virtual UR arm of Tangere in ROS 2",
    license="Apache-2.0",
    entry_points={"console_scripts": [f"feel_and_move = {name}.feel_and_move:main"]},
)
