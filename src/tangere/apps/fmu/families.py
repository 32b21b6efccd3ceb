"""What the C code of a block is made for: the UR arms, or serial arms with the same joints.

All numbers of an arm are parameters of its block (`raw`, in the order of part.arm_parameters). A family says how many
joints there are and which of them slide, how `raw` becomes the parameters P of the kernels, and the chain over P.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.codegen.functions import cos, sin, sqrt, where
from tangere.kernels import ur
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Body, Chain, pieces
from tangere.kinematics.vectors import Matrix, Scalar, Vector
from tangere.model.model import Model

Frame = tuple[Matrix, Vector]  # rotation and place
_LINK = 1 + 3 + 6  # mass, centre of mass, inertia
_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of a symmetric matrix


@dataclass(frozen=True)
class Family:
    """joints: a letter each, R for one that turns and P for one that slides. closed: UR arms, with their closed form.

    The geometry of a UR is six lengths. That of any other arm is, for every joint, its frame in that of the link before
    (z along its axis) and the frame of its link in its own: places of all, rotation vectors of all.
    """

    joints: str
    closed: bool = False

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def raw_kinematic(self) -> int:
        """Numbers of geometry and tool at the head of `raw`."""
        return 6 + 6 if self.closed else 12 * self.dof + 6

    @property
    def raw(self) -> int:
        """All of them: gravity, links, payload and rotor inertia follow."""
        return self.raw_kinematic + 3 + _LINK * self.dof + _LINK + self.dof

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Joint frames, tcp, gravity, moments (seven of a link that turns: see Chain.regrouped), rotor, fixed part."""
        moments = sum(10 if kind == "P" else 7 for kind in self.joints)
        return 12 * self.dof, 12, 3, moments, self.dof, 3

    @property
    def parameter_count(self) -> int:
        """Length of P."""
        return ur.PARAMETER_COUNT if self.closed else sum(self._sizes)

    def chain(self, P: list[Scalar]) -> Chain:
        """The chain over P, of floats or of traced symbols."""
        if self.closed:
            return ur.chain(P)
        frames, tcp, gravity, moments, rotor, fixed_h = pieces(P, *self._sizes)
        bodies, at = [], 0
        for kind in self.joints:
            if kind == "P":
                m, hx, hy, hz, xx, yy, zz, xy, xz, yz = moments[at : at + 10]
                at += 10
            else:
                xx, yy, xy, xz, yz, hx, hy = moments[at : at + 7]
                m = hz = zz = 0.0
                at += 7
            bodies.append(Body(m, [hx, hy, hz], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        steps = [frames[12 * i : 12 * i + 12] for i in range(self.dof)]
        placed = [(_rows(s), s[9:]) for s in (*steps, tcp)]
        return self._assembled(placed[:-1], placed[-1], bodies, gravity, rotor, fixed_h)

    def _assembled(
        self, steps: list[Frame], tcp: Frame, bodies: list[Body], gravity: Vector,
        rotor: Vector, fixed_h: Vector,
    ) -> Chain:  # fmt: skip
        none = [0.0] * 3  # link frames and centres of mass: no kernel of a block asks for them
        return Chain(
            turns=[float(kind == "R") for kind in self.joints],
            slides=[float(kind == "P") for kind in self.joints],
            offsets=[0.0] * self.dof,
            R=[R for R, _ in steps],
            p=[p for _, p in steps],
            R_link=[v.IDENTITY] * self.dof,
            p_link=[none] * self.dof,
            R_tcp=tcp[0],
            p_tcp=tcp[1],
            bodies=bodies,
            com=[none] * self.dof,
            gravity=gravity,
            rotor=rotor,
            fixed_h=fixed_h,
            fixed_m=0.0,
        )

    def kinematic(self, x: list[Scalar]) -> list[Scalar]:
        """The head of P, which poses need, from the head of `raw`."""
        if self.closed:
            R = _rotation(x[9:12])
            return [*x[:6], *R[0], *R[1], *R[2], *x[6:9]]
        steps, tcp, _ = self._frames(x)
        return [y for R, p in (*steps, tcp) for y in (*R[0], *R[1], *R[2], *p)]

    def _frames(self, x: list[Scalar]) -> tuple[list[Frame], Frame, list[Frame]]:
        """Steps from joint to joint, tcp in the last joint's frame, links in their joints' frames."""
        n = 3 * self.dof
        *parts, tool = pieces(x[: self.raw_kinematic], n, n, n, n, 6)
        joints, links = (
            [_frame([*at[3 * i : 3 * i + 3], *turn[3 * i : 3 * i + 3]]) for i in range(self.dof)]
            for at, turn in (parts[:2], parts[2:])
        )
        steps = [joints[0], *(_after(links[i - 1], joints[i]) for i in range(1, self.dof))]
        return steps, _after(links[-1], _frame(tool)), links

    def dynamic(self, x: list[Scalar]) -> list[Scalar]:
        """The whole of P from `raw`."""
        n = self.dof
        gravity, masses, coms, inertias, load, rotor = pieces(x[self.raw_kinematic :], 3, n, 3 * n, 6 * n, _LINK, n)
        bodies = [_body(masses[i], coms[3 * i : 3 * i + 3], inertias[6 * i : 6 * i + 6]) for i in range(n)]
        bodies[-1] = bodies[-1].plus(_body(load[0], load[1:4], load[4:10]))
        if self.closed:
            tail = ur.mass_parameters(list(x[:6]), bodies, list(gravity), list(rotor), centres=False)
            return [*self.kinematic(x), *tail]
        steps, tcp, links = self._frames(x)
        moved = [b.moved(R, p) for b, (R, p) in zip(bodies, links, strict=True)]
        chain = self._assembled(steps, tcp, moved, gravity, rotor, [0.0] * 3).regrouped()
        moments: list[Scalar] = []
        for kind, b in zip(self.joints, chain.bodies, strict=True):
            second = [b.S[i][j] for i, j in _ORDER]
            moments += [b.m, *b.h, *second] if kind == "P" else [*second[:2], *second[3:], *b.h[:2]]
        return [*self.kinematic(x), *gravity, *moments, *rotor, *chain.fixed_h]


UR = Family("R" * ur.DOF, closed=True)


def family_of(model: Model) -> Family:
    """The family that a model belongs to."""
    if ur.is_ur(model):
        return UR
    return Family("".join("R" if j.kind == "revolute" else "P" for j in model.joints))


def _rows(values: list[Scalar]) -> Matrix:
    return [list(values[0:3]), list(values[3:6]), list(values[6:9])]


def _rotation(x: Vector) -> Matrix:
    """R of a rotation vector, by way of its quaternion: nothing cancels near zero."""
    t = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    small = t <= 1e-9  # [rad] sin(t/2)/t is 1/2 to the last digit below
    s = where(small, 0.5, sin(0.5 * t) / where(small, 1.0, t))
    w, i, j, k = cos(0.5 * t), s * x[0], s * x[1], s * x[2]
    return [
        [1.0 - 2.0 * (j * j + k * k), 2.0 * (i * j - w * k), 2.0 * (i * k + w * j)],
        [2.0 * (i * j + w * k), 1.0 - 2.0 * (i * i + k * k), 2.0 * (j * k - w * i)],
        [2.0 * (i * k - w * j), 2.0 * (j * k + w * i), 1.0 - 2.0 * (i * i + j * j)],
    ]


def _frame(x: Vector) -> Frame:
    """x, y, z and rotation vector as rotation and place."""
    return _rotation(x[3:6]), list(x[:3])


def _after(a: Frame, b: Frame) -> Frame:
    """Frame b, given in frame a, where a is given."""
    return v.matmul(a[0], b[0]), v.add(a[1], v.matvec(a[0], b[1]))


def _body(m: Scalar, c: Vector, inertia: Vector) -> Body:
    """Moments of a body about its frame's origin from mass, centre of mass and xx, yy, zz, xy, xz, yz about it."""
    xx, yy, zz, xy, xz, yz = inertia
    half = 0.5 * (xx + yy + zz)
    S: Matrix = [[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]]
    h = [m * x for x in c]
    return Body(m, h, [[S[i][j] + h[i] * c[j] for j in range(3)] for i in range(3)])
