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
from tangere.plants.scene.bodies import BODY_COLOURS, Body
from tangere.plants.scene.scene import Pen, Scene, Tool

# MuJoCo refuses a moving body without inertia, so a point mass gets this much [kg m2]: 1e-12 of what the pendulum's
# mass has about its joint, below every tolerance we compare with.
_POINT_INERTIA = 1e-12
# Dry friction in MuJoCo is soft: a joint held by it creeps at (1 - d) / d * qdd_free * time constant / 2. With d = 0.9
# (the default) and 20 ms that is a millimetre per second at the tool; with these, micrometres.
_STICTION = 'solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001 0.5 2"'
PEN_TIP = "tangere_pen_tip"  # name of the geom of a tool that touches; of a sliding tip's body and joint


def to_mjcf(
    model: Model,
    *,
    rotor_inertia: bool | Sequence[float] | Array = False,
    damping: Sequence[float] | Array | None = None,
    frictionloss: Sequence[float] | Array | None = None,
    scene: Scene | None = None,
    shapes: bool = True,
) -> str:
    """The model as MuJoCo XML text, for mujoco.MjModel.from_xml_string.

    A MuJoCo body frame is the joint's frame after its motion: bodies, with the payload joined to the last one, are
    written there. M, C qd and g of the compiled model are those of the Model (MuJoCo diagonalises the inertias, which
    costs a few digits: 1e-9 relative is safe). Joint ranges are hard limits in MuJoCo, torque limits are the control
    ranges of the motors `<joint name>`; a site `tcp` sits at the tool point. Shapes are to look at and, without a
    scene, do not collide (contype 0). A point mass (inertia zero) gets 1e-12 kg m2, because MuJoCo refuses zero.

    rotor_inertia: True adds the drives' rotor inertia as armature (every joint's must be known), numbers (n,) add
        those [kg m2]. damping (n,) [Nm s/rad] and frictionloss (n,) [Nm]: viscous friction and stiction; none if None.
    scene: bodies, tool, and what collides; with a sliding tip the model has one more joint after the arm's, and bodies
        that move have theirs after that. shapes: False leaves the arm's own shapes out.
    """
    armature = _armature(model, rotor_inertia)
    viscous = np.zeros(model.dof) if damping is None else np.asarray(damping, dtype=float)
    dry = np.zeros(model.dof) if frictionloss is None else np.asarray(frictionloss, dtype=float)
    scene = Scene() if scene is None else scene
    links = (*model.links[:-1], _last_link(model, scene.sliding))
    ratio = max((body.contact.friction_ratio for body in scene.bodies), default=1.0)
    impratio = "" if ratio == 1.0 else f' impratio="{ratio:g}"'
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
        *([f"    {_geom(base_shape(model), False)}"] if shapes else []),
        *(f"    {line}" for body in scene.bodies if body.mass is None for line in _geoms(body, body.T)),
    ]
    T = np.eye(4)
    seen = link_shapes(model) if shapes else [[] for _ in model.links]
    for i, (joint, link) in enumerate(zip(model.joints, links, strict=True)):
        indent = "    " + "  " * i
        out.append(f"{indent}<body name={quoteattr(link.name)} {_pose(T @ joint.T_parent_joint)}>")
        out.append(f"{indent}  {_joint(joint, float(armature[i]), float(viscous[i]), float(dry[i]))}")
        out.append(f"{indent}  {_inertial(moved(link, joint.T_joint_link))}")
        T = joint.T_joint_link
        out += [f"{indent}  {_geom(shape, scene.links_collide)}" for shape in seen[i]]
    inner = "    " + "  " * model.dof
    out.append(f'{inner}<site name="tcp" {_pose(T @ model.T_flange_tcp)} size="0.004"/>')
    if scene.tool is not None:
        out += [inner + line for line in _tool(scene.tool, scene.sliding, T, scene.links_collide)]
    out += ["    " + "  " * i + "</body>" for i in reversed(range(model.dof))]
    out += [f"    {line}" for body in scene.bodies if body.mass is not None for line in _free(body, body.mass)]
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


def _tool(tool: Tool, sliding: Pen | None, T: Array, links_collide: bool) -> list[str]:
    """Geoms of the tool in the last body, T its flange there; the tip in a body of its own if it slides."""
    shafts = [_geom(_placed(shape, T), links_collide) for shape in tool.shafts()]
    part = tool.tip()
    place = T @ part.T
    size = " ".join(repr(edge) for edge in part.size)
    tip = f'<geom name="{PEN_TIP}" type="{part.kind}" size="{size}" rgba="{COLOURS["pen"]}" conaffinity="1"'
    if sliding is None:
        where = f"pos={_numbers(place[:3, 3])}" if part.kind == "sphere" else _pose(place)
        return [*shafts, f"{tip} {where}/>"]
    body = _tip(sliding)
    spring = f"stiffness={_numbers([sliding.stiffness or 0.0])} damping={_numbers([sliding.tip_damping()])}"
    return [
        *shafts,
        f'<body name="{PEN_TIP}" pos={_numbers(place[:3, 3])}>',
        f'  <joint name="{PEN_TIP}" type="slide" axis={_numbers(T[:3, 2])} {spring}/>',
        f"  {_inertial(Link('tip', body.mass, np.zeros(3), body.inertia))}",
        f"  {tip}/>",
        "</body>",
    ]


def _placed(shape: Segment, T: Array) -> Segment:
    start, end = (T[:3, :3] @ point + T[:3, 3] for point in (shape.start, shape.end))
    return Segment(shape.colour, start, end, shape.radius, round=shape.round)


def _geoms(body: Body, T: Array) -> list[str]:
    """The body's shape as geoms at T (4, 4), which meet what collides of the arm; those of one that moves meet all."""
    solref, d = body.contact.solver(body.mass)
    contact = f'condim="3" friction={_numbers((body.friction, 0.005, 0.0001))} '
    contact += "" if solref is None else f"solref={_numbers(solref)} "
    colour = BODY_COLOURS.get(body.kind, BODY_COLOURS["surface"])
    contact += f'solimp={_numbers((d, d, 0.001, 0.5, 2.0))} rgba="{colour}"'
    meets = 'contype="1"' if body.mass is None else 'contype="1" conaffinity="1"'
    return [
        f'<geom name={quoteattr(body.name + part.name)} type="{part.kind}" size={_numbers(part.size)} '
        f'{_axes(T @ part.T)} {meets} priority="1" {contact}/>'
        for part in body.shape.parts()
    ]


def _free(body: Body, mass: float) -> list[str]:
    """A body that moves, held in the air until the plant lets it go; its inertia is that of solid parts."""
    name = quoteattr(body.name)
    inertia = sum((_solid(part.kind, part.size) for part in body.shape.parts()), np.zeros(3)) * mass
    return [
        f'<body name={name} {_pose(body.T)} gravcomp="1">',
        f"  <freejoint name={name}/>",
        f'  <inertial mass={_numbers([mass])} pos="0 0 0" diaginertia={_numbers(inertia)}/>',
        *(f"  {line}" for line in _geoms(body, np.eye(4))),
        "</body>",
    ]


def _solid(kind: str, size: Sequence[float]) -> Array:
    """Principal moments (3,) per kg [m2] of a solid sphere, or of a solid box with these half edges."""
    if kind == "sphere":
        return np.full(3, 0.4 * size[0] ** 2)
    squares = np.square(size)
    return np.asarray((squares.sum() - squares) / 3.0)


def _geom(shape: Segment, collides: bool) -> str:
    kind = "capsule" if shape.round else "cylinder"
    meets = ' conaffinity="1"' if collides and shape.colour != "cap" else ""
    ends = _numbers([*shape.start.tolist(), *shape.end.tolist()])
    return f'<geom type="{kind}" fromto={ends} size="{shape.radius:.6g}" rgba="{COLOURS[shape.colour]}"{meets}/>'


def _numbers(values: Sequence[float] | Array) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))


def _axes(T: Array) -> str:
    """A pose by its x and y axes: exact where they are the base's, which half-angles of a quaternion are not."""
    return f"pos={_numbers(T[:3, 3])} xyaxes={_numbers([*T[:3, 0], *T[:3, 1]])}"


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
