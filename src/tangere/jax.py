"""The quantities of an arm as pure functions of JAX arrays, for jit, vmap and grad (extra `jax`).

    import tangere.jax
    arm = tangere.jax.robot("ur10e")
    tau = jax.jit(arm.inverse_dynamics)(q, qd, qdd)
    dtau_dq = jax.jacfwd(arm.inverse_dynamics)(q, qd, qdd)

They are printed from the same traces as the compiled kernels, and agree with them within 1e-12 in float64, which JAX
computes in once it was told so: jax.config.update("jax_enable_x64", True). A function cannot look at the numbers of an
array that is being traced: NaN goes through, only shapes are refused. Where JAX computes on a GPU, a function is the
CUDA kernel itself, called through XLA's FFI, and its derivative the printed form.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tangere import foreign, robots
from tangere.errors import InvalidValue, TangereError
from tangere.kernels import ur
from tangere.kernels.device import device
from tangere.kernels.emit import jax as emit
from tangere.kernels.payloads import payload_map
from tangere.kernels.solutions import Branches
from tangere.kernels.table import Kernel, Trace, all_kernels, trace, trace_ik
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.chain import chain_of

__all__ = ["Branches", "JaxRobot", "robot"]

JaxArray = Any  # a jax.Array, or whatever jax.numpy takes for one
Form = Callable[..., tuple[Any, ...]]


def robot(name: str | os.PathLike[str] | robots.Robot, **options: Any) -> JaxRobot:
    """The robot of that name or file, or a tangere.Robot, as functions of JAX arrays; options as tangere.robot's."""
    if isinstance(name, robots.Robot):
        if options:
            raise InvalidValue(f"options ({', '.join(options)}) are given where the robot is made, not beside it")
        return JaxRobot(name)
    return JaxRobot(robots.robot(name, **options))


class JaxRobot:
    """A serial arm whose methods are pure functions; names, shapes and units are those of tangere.Robot.

    All take one state or any leading axes: q, qd, qdd, tau (..., n). The precision is that of the arrays given.
    """

    def __init__(self, of: robots.Robot, parameters: Any = None) -> None:
        """Of a tangere.Robot; parameters: in place of its own, of a UR (see with_payload)."""
        self._jnp = emit.numpy_of_jax()
        _say_once()
        self.robot = of
        self._is_ur = ur.is_ur(of.model)
        self._kernels = _named(of.dof)
        own = ur.parameters_of(of.model, rotor_inertia=of.rotor_inertia).tolist() if self._is_ur else []
        self._parameters: Any = own if parameters is None else parameters
        self._own = parameters is None
        self._forms: dict[str, Form] = {}
        self._calls_on_gpu: dict[str, Form] = {}

    def __repr__(self) -> str:
        return f"tangere.jax.robot({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxRobot, (self.robot, None if self._own else self._parameters)

    @property
    def name(self) -> str:
        """Name of the arm."""
        return self.robot.name

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.robot.dof

    def with_payload(self, mass: JaxArray, com: JaxArray = (0.0, 0.0, 0.0)) -> JaxRobot:
        """The same arm with a point mass [kg] at com (3,) [m] in flange axes, in place of its payload.

        For a UR both may be traced: a batch of payloads under vmap, a derivative by mass under grad.
        """
        jnp, m, c = self._jnp, self._array(mass, "mass"), self._array(com, "com")
        if m.shape != () or c.shape != (3,):
            raise InvalidValue(f"with_payload: one mass and com (3,), got {m.shape}, {c.shape}; vmap does many")
        known = _known(m), _known(c)
        for number, what in zip(known, ("mass", "com"), strict=True):
            if number is not None and not np.all(np.isfinite(number)):
                raise InvalidValue(f"{what}: every entry must be finite, got {number}")
        if known[0] is not None and known[0] < 0.0:
            raise InvalidValue(f"mass: 0 kg or more, got {known[0]:g}")
        if not self._is_ur:
            if known[0] is None or known[1] is None:
                raise InvalidValue(f"with_payload: {self.name} is no UR, its mass must be a plain number")
            return JaxRobot(self.robot.with_payload((float(known[0]), known[1])))
        plan = payload_map(self.robot.model, self.robot.rotor_inertia)
        second = [c[i] * c[j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
        moments = m * jnp.stack([jnp.ones_like(c[0]), c[0], c[1], c[2], *second])
        last = plan.last + plan.last_slope @ moments
        P = (plan.bare + plan.slope @ moments).at[plan.com : plan.com + 3].set(last[1:] / last[0])
        return JaxRobot(self.robot, P)

    # ---- kinematics ----

    def pose(self, q: JaxArray) -> JaxArray:
        """T_base_tcp (..., 4, 4)."""
        return self._call("pose", q)

    fk = pose

    def link_poses(self, q: JaxArray) -> JaxArray:
        """Frames of all links (..., n, 4, 4)."""
        return self._call("link_poses", q)

    def jacobian(self, q: JaxArray, link: int | None = None, point: JaxArray | None = None) -> JaxArray:
        """Geometric Jacobian (..., 6, n) at the tcp, or at `point` (..., 3) [m] of link number `link` (1 ... n)."""
        if link is None:
            if point is not None:
                raise InvalidValue(f"point: given without a link; a point is in the frame of link 1 ... {self.dof}")
            return self._call("jacobian", q)
        if not (isinstance(link, int | np.integer) and 1 <= link <= self.dof):
            raise InvalidValue(f"link: got {link!r}, valid are 1 to {self.dof}, or None for the tcp")
        return self._call(f"jacobian_link{int(link)}", q, (0.0, 0.0, 0.0) if point is None else point)

    def link_jacobians(self, q: JaxArray) -> tuple[JaxArray, ...]:
        """Jv and Jw (..., n, 3, n) at every link's centre of mass."""
        return self._calls("link_jacobians", q)

    def jacobian_rate_times_velocity(self, q: JaxArray, qd: JaxArray) -> JaxArray:
        """Jdot qd (..., 6)."""
        return self._call("jacobian_rate_times_velocity", q, qd)

    def inverse_kinematics(self, T: JaxArray, reference: JaxArray | None = None) -> Branches:
        """All solutions of poses T_base_tcp (..., 4, 4) of a UR, in closed form; reference (6,) or (..., 6).

        What is no rotation within 1e-5 has no valid solution. Singular poses are solved as tangere.Robot solves them,
        but for one case: where shoulder and elbow are singular at once, the few solutions that only an iteration finds
        are left out. Derivatives exist away from singularities.
        """
        jnp = self._jnp
        if not self._is_ur:
            raise InvalidValue(f"inverse_kinematics: {self.name} is no UR; the closed form is that of a UR")
        poses = self._array(T, "T")
        if poses.dtype.itemsize < 4:
            raise InvalidValue(f"T: float32 or float64, got {poses.dtype}, whose rotations are none within 1e-5")
        if poses.shape[-2:] != (4, 4):
            raise InvalidValue(f"T: expected shape (..., 4, 4), got {poses.shape}")
        lead, kernels, P = poses.shape[:-2], _ik_forms(), self._parameters
        flat = poses.reshape(*lead, 16)
        prepared = self._rows(kernels["ik_project"]([flat[..., i] for i in range(16)], P), lead)
        correction, determinant, last = (prepared[..., 12 + i] for i in range(3))
        ref = self._array(np.zeros(6) if reference is None else reference, "reference").astype(poses.dtype)
        if ref.shape[-1:] != (6,) or (ref.ndim > 1 and ref.shape[:-1] != lead):
            raise InvalidValue(f"reference: one joint vector (6,) or the leading axes of the poses, got {ref.shape}")
        given = 0.0 if reference is None else 1.0
        held = [ref[..., None, k] for k in (0, 2, 5)]
        signs = [jnp.asarray(row, poses.dtype) for row in np.array(inverse.SIGNS).T]
        x = [prepared[..., None, i] for i in range(12)] + [*held, given, correction[..., None], *signs]
        branches = self._rows(kernels["ik_branch"](x, P), (*lead, inverse.LANES))
        q = branches[..., :6]
        rotation = (correction <= inverse.ROTATION_TOLERANCE) & (determinant > 0.5)
        fit = rotation & (last <= inverse.ROTATION_TOLERANCE)
        found = (branches[..., 6] > 0.5) & fit[..., None]
        angles = q.reshape(*lead, 48)
        told = [ref[..., k] for k in range(6)]
        merged = kernels["ik_merge"](
            [angles[..., i] for i in range(48)] + [found[..., i] + 0.0 for i in range(8)] + [*told, given], P
        )
        valid = found & (self._rows(merged, lead) > 0.5)
        bits = (branches[..., 8:] > 0.5) * jnp.asarray(2 ** np.arange(4), jnp.uint8)
        away = jnp.where(valid.any(axis=-1), 0.0, branches[..., 7].min(axis=-1))
        return Branches(q, valid, bits.sum(axis=-1).astype(jnp.uint8), correction, away)

    ik = inverse_kinematics

    # ---- dynamics ----

    def mass_matrix(self, q: JaxArray) -> JaxArray:
        """M(q) (..., n, n) [kg m2]."""
        return self._call("mass_matrix", q)

    def coriolis_matrix(self, q: JaxArray, qd: JaxArray) -> JaxArray:
        """C(q, qd) (..., n, n) with the Christoffel symbols."""
        return self._call("coriolis_matrix", q, qd)

    def gravity_torque(self, q: JaxArray) -> JaxArray:
        """g(q) (..., n) [Nm]."""
        return self._call("gravity_torque", q)

    def bias_torque(self, q: JaxArray, qd: JaxArray) -> JaxArray:
        """C qd + g (..., n) [Nm]."""
        return self._call("bias_torque", q, qd)

    def inverse_dynamics(self, q: JaxArray, qd: JaxArray, qdd: JaxArray) -> JaxArray:
        """tau = M qdd + C qd + g (..., n) [Nm]."""
        return self._call("inverse_dynamics", q, qd, qdd)

    def forward_dynamics(self, q: JaxArray, qd: JaxArray, tau: JaxArray) -> JaxArray:
        """qdd = M^-1 (tau - C qd - g) (..., n) [rad/s2]."""
        return self._call("forward_dynamics", q, qd, tau)

    def momentum_terms(self, q: JaxArray, qd: JaxArray) -> tuple[JaxArray, ...]:
        """p = M qd, C^T qd and g (..., n) each."""
        return self._calls("momentum_terms", q, qd)

    def inverse_dynamics_derivatives(self, q: JaxArray, qd: JaxArray, qdd: JaxArray) -> tuple[JaxArray, ...]:
        """d tau/dq, d tau/dqd, d tau/dqdd (..., n, n) each."""
        return self._calls("inverse_dynamics_derivatives", q, qd, qdd)

    def energy(self, q: JaxArray, qd: JaxArray) -> tuple[JaxArray, ...]:
        """Kinetic and potential energy (...) [J]."""
        return self._calls("energy", q, qd)

    def regressor(self, q: JaxArray, qd: JaxArray, qdd: JaxArray) -> JaxArray:
        """Y (..., n, 10 n) with tau = Y pi."""
        return self._call("regressor", q, qd, qdd)

    # ---- the call ----

    def _call(self, name: str, *args: JaxArray) -> JaxArray:
        return self._calls(name, *args)[0]

    def _calls(self, name: str, *args: JaxArray) -> tuple[JaxArray, ...]:
        jnp, kernel = self._jnp, self._kernels[name]
        arrays = []
        for value, what, size in zip(args, kernel.inputs, kernel.input_sizes(self.dof), strict=True):
            array = self._array(value, what)
            if array.shape[-1:] != (size,):
                raise InvalidValue(f"{what}: expected shape (..., {size}), got {array.shape}")
            arrays.append(array)
        try:
            lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        except ValueError:
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise InvalidValue(f"leading axes do not fit together: shapes {shapes}") from None
        kind = jnp.result_type(*arrays)
        if self._own and kind in (np.float32, np.float64) and prod(lead) and _on_gpu():
            whole = [jnp.broadcast_to(jnp.asarray(a, kind), (*lead, a.shape[-1])) for a in arrays]
            done: tuple[JaxArray, ...] = self._quick(name, kind.name)(*whole)
            return done
        return self._printed(name, lead, arrays)

    def _array(self, value: Any, what: str) -> JaxArray:
        """A JAX array of real numbers; whole ones become float."""
        jnp = self._jnp
        try:
            array = jnp.asarray(value, dtype=None if hasattr(value, "dtype") else float)
        except (TypeError, ValueError, OverflowError):
            raise InvalidValue(f"{what}: expected real numbers, got {foreign.shown(value)}") from None
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise InvalidValue(f"{what}: expected real numbers, got {array.dtype}")
        return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)

    def _printed(self, name: str, lead: tuple[int, ...], arrays: Sequence[JaxArray]) -> tuple[JaxArray, ...]:
        """The outputs by the printed form."""
        columns = [a[..., i] for a in arrays for i in range(a.shape[-1])]
        y = self._rows(self._form(name)(columns, self._parameters), lead, arrays)
        out, start = [], 0
        for shape in self._kernels[name].outputs(self.dof):
            out.append(y[..., start : start + prod(shape)].reshape(*lead, *shape))
            start += prod(shape)
        return tuple(out)

    def _quick(self, name: str, dtype: str) -> Form:
        """The CUDA kernel where XLA compiles for a GPU, the printed form elsewhere and for derivatives."""
        key = f"{name} {dtype}"
        if key in self._calls_on_gpu:
            return self._calls_on_gpu[key]
        import jax

        target, shapes = self.robot.batch(device="cuda", dtype=dtype).for_xla(name)

        def there(*arrays: JaxArray) -> Any:
            lead = arrays[0].shape[:-1]
            wanted = [jax.ShapeDtypeStruct((*lead, *shape), dtype) for shape in shapes]
            return tuple(jax.ffi.ffi_call(target, wanted, vmap_method="broadcast_all")(*arrays))

        def printed(*arrays: JaxArray) -> Any:
            return self._printed(name, arrays[0].shape[:-1], arrays)

        call: Any = jax.custom_jvp(lambda *arrays: jax.lax.platform_dependent(*arrays, cuda=there, default=printed))
        call.defjvp(lambda given, change: jax.jvp(printed, given, change))
        self._calls_on_gpu[key] = jax.jit(call)
        return self._calls_on_gpu[key]

    def _rows(self, columns: tuple[Any, ...], lead: tuple[int, ...], given: Sequence[JaxArray] = ()) -> JaxArray:
        """Columns, some or all of them plain numbers, as one array (..., m); given: what they were computed from."""
        jnp = self._jnp
        kind = jnp.result_type(*columns, *given)
        return jnp.stack([jnp.broadcast_to(jnp.asarray(c, kind), lead) for c in columns], axis=-1)

    def _form(self, name: str) -> Form:
        if self._is_ur:
            return _ur_form(name)
        if name not in self._forms:  # other arms have their numbers written into the function
            chain = chain_of(self.robot.model, rotor_inertia=self.robot.rotor_inertia)
            self._forms[name] = _form_of(trace(self._kernels[name], self.dof, lambda _: chain, 0))
        return self._forms[name]


def _known(array: JaxArray) -> Any:
    """The numbers of an array; None while it is being traced."""
    import jax

    return None if isinstance(array, jax.core.Tracer) else np.asarray(array)


def _form_of(t: Trace) -> Form:
    return emit.compiled(t.graph, ["x"], t.outputs)


@cache
def _named(dof: int) -> dict[str, Kernel]:
    return {k.name: k for k in all_kernels(dof)}


@cache
def _ur_form(name: str) -> Form:
    return _form_of(trace(_named(ur.DOF)[name], ur.DOF, ur.chain, ur.PARAMETER_COUNT))


@cache
def _ik_forms() -> dict[str, Form]:
    return {name: _form_of(t) for name, t in trace_ik(ur.PARAMETER_COUNT).items()}


@cache
def _on_gpu() -> bool:
    """Whether JAX computes on a GPU that our kernels reach as well."""
    import jax

    if jax.default_backend() != "gpu":
        return False
    try:
        device()
    except TangereError:
        return False
    return True


_said = False


def _say_once() -> None:
    """Warn, the first time only, where JAX keeps to float32."""
    global _said
    import jax

    if not _said and not jax.config.jax_enable_x64:
        _said = True
        warnings.warn(
            "JAX computes in float32 (about 1e-6 of the largest entry); for float64 say "
            'jax.config.update("jax_enable_x64", True) before the first array is made',
            UserWarning,
            stacklevel=4,
        )
