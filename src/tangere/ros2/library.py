"""The C library inside the Python package `cyclonedds`, called directly.

The package's own classes announce the type of every topic, which ROS 2 up to Kilted does not do, and which makes some
peers refuse a match; the C calls below leave it out. They are looked up at the start: a library that lacks one is
refused with a sentence. Known to work with 11.0.
"""

from __future__ import annotations

import ctypes as ct
from functools import cache
from typing import Any

from tangere.errors import MissingExtra, TangereError

INSTALL = "pip install 'tangere[ros2]'"
MAJOR = "11"

Entity = ct.c_int32
Handle = ct.c_uint64
_Pointer = ct.c_void_p


class Blob(ct.Structure):
    """Type information: none."""

    _fields_ = (("data", ct.c_void_p), ("size", ct.c_uint32))


class Descriptor(ct.Structure):
    """A topic's type: how its samples lie in memory, in the library's own codes."""

    _fields_ = (
        ("size", ct.c_uint32), ("align", ct.c_uint32), ("flags", ct.c_uint32), ("keys", ct.c_uint32),
        ("name", ct.c_char_p), ("key_list", ct.c_void_p), ("code_count", ct.c_uint32),
        ("codes", ct.POINTER(ct.c_uint32)), ("meta", ct.c_char_p), ("information", Blob), ("mapping", Blob),
        ("representation", ct.c_uint32),
    )  # fmt: skip


class Piece(ct.Structure):
    """Bytes somewhere."""

    _fields_ = (("base", ct.c_void_p), ("size", ct.c_size_t))


class Info(ct.Structure):
    """What comes with a sample."""

    _fields_ = (
        ("sample_state", ct.c_int), ("view_state", ct.c_int), ("instance_state", ct.c_int), ("valid", ct.c_bool),
        ("stamp", ct.c_int64), ("instance", Handle), ("publication", Handle), ("disposed", ct.c_uint32),
        ("no_writers", ct.c_uint32), ("sample_rank", ct.c_uint32), ("generation", ct.c_uint32),
        ("absolute", ct.c_uint32),
    )  # fmt: skip


class Endpoint(ct.Structure):
    """A reader or writer of somebody else."""

    _fields_ = (
        ("guid", ct.c_uint8 * 16), ("participant", ct.c_uint8 * 16), ("participant_handle", Handle),
        ("topic", ct.c_char_p), ("type", ct.c_char_p), ("qos", ct.c_void_p),
    )  # fmt: skip


# name -> result and arguments
_CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dds_create_domain": (Entity, (ct.c_uint32, ct.c_char_p)),
    "dds_create_participant": (Entity, (ct.c_uint32, _Pointer, _Pointer)),
    "dds_create_topic": (Entity, (Entity, ct.POINTER(Descriptor), ct.c_char_p, _Pointer, _Pointer)),
    "dds_create_writer": (Entity, (Entity, Entity, _Pointer, _Pointer)),
    "dds_create_reader": (Entity, (Entity, Entity, _Pointer, _Pointer)),
    "dds_delete": (Entity, (Entity,)),
    "dds_get_guid": (Entity, (Entity, _Pointer)),
    "dds_get_instance_handle": (Entity, (Entity, ct.POINTER(Handle))),
    "dds_get_matched_subscriptions": (Entity, (Entity, ct.POINTER(Handle), ct.c_size_t)),
    "dds_get_matched_publications": (Entity, (Entity, ct.POINTER(Handle), ct.c_size_t)),
    "dds_get_matched_subscription_data": (ct.POINTER(Endpoint), (Entity, Handle)),
    "dds_get_matched_publication_data": (ct.POINTER(Endpoint), (Entity, Handle)),
    "dds_builtintopic_free_endpoint": (None, (ct.POINTER(Endpoint),)),
    "dds_get_entity_sertype": (Entity, (Entity, ct.POINTER(ct.c_void_p))),
    "ddsi_serdata_from_ser_iov": (
        _Pointer, (_Pointer, ct.c_int, ct.c_size_t, ct.POINTER(Piece), ct.c_size_t),
    ),
    "ddsi_serdata_size": (ct.c_uint32, (_Pointer,)),
    "ddsi_serdata_to_ser": (None, (_Pointer, ct.c_size_t, ct.c_size_t, _Pointer)),
    "ddsi_serdata_unref": (None, (_Pointer,)),
    "dds_writecdr": (Entity, (Entity, _Pointer)),
    "dds_takecdr": (Entity, (Entity, ct.POINTER(ct.c_void_p), ct.c_uint32, ct.POINTER(Info), ct.c_uint32)),
    "dds_create_waitset": (Entity, (Entity,)),
    "dds_create_readcondition": (Entity, (Entity, ct.c_uint32)),
    "dds_create_guardcondition": (Entity, (Entity,)),
    "dds_set_guardcondition": (Entity, (Entity, ct.c_bool)),
    "dds_waitset_attach": (Entity, (Entity, Entity, ct.c_ssize_t)),
    "dds_waitset_detach": (Entity, (Entity, Entity)),
    "dds_waitset_wait": (Entity, (Entity, ct.POINTER(ct.c_ssize_t), ct.c_size_t, ct.c_int64)),
    "dds_create_qos": (_Pointer, ()),
    "dds_delete_qos": (None, (_Pointer,)),
    "dds_qset_reliability": (None, (_Pointer, ct.c_int, ct.c_int64)),
    "dds_qset_durability": (None, (_Pointer, ct.c_int)),
    "dds_qset_history": (None, (_Pointer, ct.c_int, ct.c_int32)),
    "dds_qset_durability_service": (
        None, (_Pointer, ct.c_int64, ct.c_int, ct.c_int32, ct.c_int32, ct.c_int32, ct.c_int32),
    ),
    "dds_qset_writer_data_lifecycle": (None, (_Pointer, ct.c_bool)),
    "dds_qset_ignorelocal": (None, (_Pointer, ct.c_int)),
    "dds_qset_data_representation": (None, (_Pointer, ct.c_uint32, ct.POINTER(ct.c_int16))),
    "dds_qset_userdata": (None, (_Pointer, ct.c_char_p, ct.c_size_t)),
    "dds_qget_userdata": (ct.c_bool, (_Pointer, ct.POINTER(ct.c_void_p), ct.POINTER(ct.c_size_t))),
    "dds_qget_reliability": (ct.c_bool, (_Pointer, ct.POINTER(ct.c_int), ct.POINTER(ct.c_int64))),
    "dds_free": (None, (_Pointer,)),
    "dds_strretcode": (ct.c_char_p, (Entity,)),
}  # fmt: skip


@cache
def library() -> Any:
    """The library, its calls typed."""
    try:
        from cyclonedds.__library__ import library_path
    except ImportError:
        raise MissingExtra(f"ROS 2 needs Cyclone DDS: {INSTALL}") from None
    except Exception as problem:  # of the package's own start: a library that does not load
        raise TangereError(f"Cyclone DDS cannot be loaded: {problem}") from None
    found = ct.CDLL(str(library_path))
    for name, (result, arguments) in _CALLS.items():
        try:
            call = getattr(found, name)
        except AttributeError:
            raise TangereError(
                f"Cyclone DDS at {library_path} has no {name}; version {MAJOR} is known to work: "
                f"pip install 'cyclonedds=={MAJOR}.*'"
            ) from None
        call.restype, call.argtypes = result, arguments
    return found


def checked(code: int, what: str) -> int:
    """A result of the library; a negative one is an error."""
    if code < 0:
        why = library().dds_strretcode(code)
        raise TangereError(f"{what}: {why.decode() if why else code}")
    return code
