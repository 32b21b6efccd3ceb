"""MuJoCo model (MJCF) of an arm: bodies, joints, limits, motors, friction and simple shapes, and what stands around."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.inertia import check_body, joined, moved, with_payload
from tangere.model.link_shapes import COLOURS, Segment, base_shape, link_shapes
from tangere.model.model import Array, Joint, Link, Model
from tangere.plants.scene.bodies import body_lines
from tangere.plants.scene.paper import FRICTION_RATIO, paper_xml
from tangere.plants.scene.scene import Pen, Scene, Surface

# MuJoCo refuses a moving body without inertia, so a point mass gets this much [kg m2]: 1e-12 of what the pendulum's
# mass has about its joint, below every tolerance we compare with.
_POINT_INERTIA = 1e-12
# Dry friction in MuJoCo is soft: a joint held by it creeps at (1 - d) / d * qdd_free * time constant / 2. With d = 0.9
# (the default) and 20 ms that is a millimetre per second at the tool; with these, micrometres.
_STICTION = 'solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001 0.5 2"'
PEN_TIP = "tangere_pen_tip"  # name of the sliding tip's body and joint, and of the tip's geom


def to_mjcf(
    model: Model,
    *,
    rotor_inertia: bool | Sequence[float] | Array = False,
    damping: Sequence[float] | Array | None = None,
    frictionloss: Sequence[float] | Array | None = None,
    scene: Scene | None = None,
) -> str:
    """The model as MuJoCo XML text, for mujoco.MjModel.from_xml_string.

    A MuJoCo body frame is the joint's frame after its motion: bodies, with the payload joined to the last one, are
    written there. M, C qd and g of the compiled model are those of the Model (MuJoCo diagonalises the inertias, which
    costs a few digits: 1e-9 relative is safe). Joint ranges are hard limits in MuJoCo, torque limits are the control
    ranges of the motors `<joint name>`; a site `tcp` sits at the tool point. Shapes are to look at and, without a
    scene, do not collide (contype 0). A point mass (inertia zero) gets 1e-12 kg m2, because MuJoCo refuses zero.

    rotor_inertia: True adds the drives' rotor inertia as armature (every joint's must be known), numbers (n,) add
        those [kg m2]. damping (n,) [Nm s/rad] and frictionloss (n,) [Nm]: viscous friction and stiction; none if None.
    scene: surfaces, pen, and what collides; with a sliding pen tip the model has one more joint after the arm's, and
        bodies that move have theirs after that.
    """
    armature = _armature(model, rotor_inertia)
    viscous = np.zeros(model.dof) if damping is None else np.asarray(damping, dtype=float)
    dry = np.zeros(model.dof) if frictionloss is None else np.asarray(frictionloss, dtype=float)
    scene = Scene() if scene is None else scene
    links = (*model.links[:-1], _last_link(model, scene.pen))
    impratio = "" if scene.paper is None else f' impratio="{FRICTION_RATIO:g}"'
    out = [
        f"<mujoco model={quoteattr(model.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false" balanceinertia="false"/>',
        # the elliptic cone is the friction law itself; the default pyramid is 30 % weaker along its edges
        f'  <option gravity={_numbers(model.gravity)} cone="elliptic"{impratio}/>',
        '  <visual><global offwidth="1920" offheight="1080"/><headlight ambient="0.35 0.35 0.35"/></visual>',
        '  <asset><texture type="skybox" builtin="gradient" rgb1="0.97 0.98 0.99" rgb2="0.72 0.78 0.85" '
        'width="64" height="384"/></asset>',
        '  <default><geom contype="0" conaffinity="0" rgba="0.6 0.7 0.8 1"/></default>',
        "  <worldbody>",
        '    <light pos="1.5 -1.5 3" dir="-0.45 0.45 -0.9" diffuse="0.5 0.5 0.5"/>',
        f"    {_geom(base_shape(model), False)}",
        *(f"    {_surface(surface)}" for surface in scene.surfaces),
        *(f"    {line}" for line in (() if scene.paper is None else paper_xml(scene.paper))),
    ]
    T = np.eye(4)
    shapes = link_shapes(model)
    for i, (joint, link) in enumerate(zip(model.joints, links, strict=True)):
        indent = "    " + "  " * i
        out.append(f"{indent}<body name={quoteattr(link.name)} {_pose(T @ joint.T_parent_joint)}>")
        out.append(f"{indent}  {_joint(joint, float(armature[i]), float(viscous[i]), float(dry[i]))}")
        out.append(f"{indent}  {_inertial(moved(link, joint.T_joint_link))}")
        T = joint.T_joint_link
        out += [f"{indent}  {_geom(shape, scene.links_collide)}" for shape in shapes[i]]
    inner = "    " + "  " * model.dof
    out.append(f'{inner}<site name="tcp" {_pose(T @ model.T_flange_tcp)} size="0.004"/>')
    if scene.pen is not None:
        out += [inner + line for line in _pen(scene.pen, T, scene.links_collide)]
    out += ["    " + "  " * i + "</body>" for i in reversed(range(model.dof))]
    out += [f"    {line}" for body in scene.bodies for line in body_lines(body)]
    out += ["  </worldbody>", "  <actuator>", *(f"    {_motor(joint)}" for joint in model.joints), "  </actuator>"]
    return "\n".join([*out, "</mujoco>", ""])


def _armature(model: Model, rotor_inertia: bool | Sequence[float] | Array) -> Array:
    if rotor_inertia is False:
        return np.zeros(model.dof)
    values = model.drives.rotor_inertia if rotor_inertia is True else np.asarray(rotor_inertia, dtype=float)
    if not np.all(np.isfinite(values)):
        raise InvalidValue(f"rotor inertia of {model.name} is not known for every joint: {values}")
    return values


def _last_link(model: Model, pen: Pen | None) -> Link:
    """The last link with its payload, less the sliding tip of a pen, which is a body of its own."""
    link = with_payload(model.links[-1], model.payload)
    if pen is None or pen.stiffness is None:
        return link
    tip = _tip(pen)
    rest = joined(link, Link("tip", -tip.mass, tip.com, -tip.inertia))
    try:
        check_body("the last link without the pen's tip", rest.mass, rest.com, rest.inertia)
    except InvalidValue as problem:
        raise InvalidValue(
            f"a pen with a sliding tip of {pen.tip_mass} kg must be part of the robot's payload "
            f"(payload=pen.payload(mass)): {problem}"
        ) from problem
    return rest


def _tip(pen: Pen) -> Link:
    inertia = 0.4 * pen.tip_mass * pen.ball**2 * np.eye(3)
    return Link("tip", pen.tip_mass, np.array((0.0, 0.0, pen.length - pen.ball)), inertia)


def _pen(pen: Pen, T: Array, links_collide: bool) -> list[str]:
    """Geoms of the pen in the last body, T its flange there; the tip in a body of its own if it slides."""
    axis, start = T[:3, 2], T[:3, 3]
    end = start + (pen.length - pen.ball) * axis
    # a fine tip stands out of the barrel by the barrel's radius
    barrel_end = end if pen.tip_radius is None else start + (pen.length - 2.0 * pen.radius) * axis
    barrel = _geom(Segment("pen", start, barrel_end, pen.radius, round=True), links_collide)
    ball = f'<geom name="{PEN_TIP}" type="sphere" size="{pen.ball}" rgba="{COLOURS["pen"]}" conaffinity="1"'
    if pen.stiffness is None:
        return [barrel, f"{ball} pos={_numbers(end)}/>"]
    tip = _tip(pen)
    spring = f"stiffness={_numbers([pen.stiffness])} damping={_numbers([pen.tip_damping()])}"
    return [
        barrel,
        f'<body name="{PEN_TIP}" pos={_numbers(end)}>',
        f'  <joint name="{PEN_TIP}" type="slide" axis={_numbers(axis)} {spring}/>',
        f"  {_inertial(Link('tip', tip.mass, np.zeros(3), tip.inertia))}",
        f"  {ball}/>",
        "</body>",
    ]


def _surface(surface: Surface) -> str:
    d = surface.impedance
    return (
        f'<geom name={quoteattr(surface.name)} type="box" size={_numbers(surface.half_sizes())} '
        f'{_pose(surface.pose())} contype="1" priority="1" '
        f'condim="3" friction={_numbers((surface.friction, 0.005, 0.0001))} '
        f"solref={_numbers((surface.time_constant, surface.damping_ratio))} solimp={_numbers((d, d, 0.001, 0.5, 2.0))} "
        f'rgba="0.93 0.92 0.89 1"/>'
    )


def _geom(shape: Segment, collides: bool) -> str:
    kind = "capsule" if shape.round else "cylinder"
    meets = ' conaffinity="1"' if collides and shape.colour != "cap" else ""
    ends = _numbers([*shape.start.tolist(), *shape.end.tolist()])
    return f'<geom type="{kind}" fromto={ends} size="{shape.radius:.6g}" rgba="{COLOURS[shape.colour]}"{meets}/>'


def _numbers(values: Sequence[float] | Array) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))


def _quaternion(R: Array) -> list[float]:
    """Unit quaternion w x y z of a rotation (001 eqs 9a-d): the largest component first, the others from it."""
    trace = float(np.trace(R))
    squares = np.array([1.0 + trace, *(1.0 - trace + 2.0 * R[k, k] for k in range(3))])  # 4 w^2, 4 x^2, 4 y^2, 4 z^2
    k = int(np.argmax(squares))
    products = np.array(
        [
            [squares[0], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], squares[1], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], squares[2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], squares[3]],
        ]
    )
    q = products[k]
    return [float(value) for value in q / np.linalg.norm(q)]


def _pose(T: Array) -> str:
    return f"pos={_numbers(T[:3, 3])} quat={_numbers(_quaternion(T[:3, :3]))}"


def _joint(joint: Joint, armature: float, damping: float, frictionloss: float) -> str:
    kind = "hinge" if joint.kind == "revolute" else "slide"
    reach = f" range={_numbers((joint.q_min, joint.q_max))}" if math.isfinite(joint.q_max - joint.q_min) else ""
    rotor = f" armature={_numbers([armature])}" if armature else ""
    viscous = f" damping={_numbers([damping])}" if damping else ""
    dry = f" frictionloss={_numbers([frictionloss])} {_STICTION}" if frictionloss else ""
    return f'<joint name={quoteattr(joint.name)} type="{kind}" axis="0 0 1"{reach}{rotor}{viscous}{dry}/>'


def _inertial(link: Link) -> str:
    inertia = link.inertia if np.any(link.inertia) else _POINT_INERTIA * np.eye(3)
    order = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    full = _numbers([float(inertia[row, column]) for row, column in order])
    return f"<inertial mass={_numbers([link.mass])} pos={_numbers(link.com)} fullinertia={full}/>"


def _motor(joint: Joint) -> str:
    limit = f" ctrlrange={_numbers((-joint.tau_max, joint.tau_max))}" if math.isfinite(joint.tau_max) else ""
    return f"<motor name={quoteattr(joint.name)} joint={quoteattr(joint.name)}{limit}/>"
