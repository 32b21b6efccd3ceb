"""Names of the kinds and one line about each, without importing anything: the command line's help needs no more."""

TITLES: dict[str, str] = {
    "fk": "forward kinematics: joint positions in; pose in four forms and Jacobian out",
    "ik": "inverse kinematics: pose in; all eight solutions with flags, and the chosen one, out",
    "dynamics": "the moving arm: torques and external forces in; motion, energy and pose out",
    "inverse-dynamics": "motion in; the joint torques that it needs out",
    "controller": "computed torque with PD: reference and measurement in; joint torques out",
    "observer": "momentum observer: torques and motion in; external torques and contact flag out",
    "arm": "arm, controller and observer in one block: reference and pushes in; motion and touch out",
    "all": "forward kinematics, inverse kinematics and dynamics in one file",
}
