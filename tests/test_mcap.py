"""MCAP logs: every bit back; readers of others understand them; small; a kill costs no more than half a second."""

from __future__ import annotations

import dataclasses
import signal
import struct
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

from tangere.errors import InvalidValue, MissingExtra
from tangere.logs import mcap_pieces
from tangere.logs.log import Log, Note
from tangere.logs.mcap_log import McapFile, McapSink, write_mcap
from tangere.logs.mcap_read import read_mcap

VECTORS = (
    "q", "qd", "tau", "wrench", "q_des", "qd_des", "qdd_des", "tau_cmd", "residual", "residual_acceleration",
    "q_true", "qd_true", "tau_ext_true", "wrench_true",
)  # fmt: skip


def some_log(rng, n=300, joints=6):
    columns = {name: rng.normal(size=(n, 6 if "wrench" in name else joints)) for name in VECTORS}
    columns |= {"T_des": rng.normal(size=(n, 12)), "cost": rng.random(n)}
    columns["q"][:1, 0] = np.nan
    columns["q"][1:2, 0] = -0.0
    # 0.1 + 0.2: stamps in ns round it, the log must not
    notes = (Note(0.1 + 0.2, "touch: joint 2, 20 Nm"), Note(0.7, "Grüße, <b>\n\"quoted\"</b>"), Note(0.8, ""))
    return Log({"time": np.cumsum(rng.uniform(0.5e-3, 1.5e-3, n)), **columns}, notes=notes)


@pytest.mark.parametrize("n", [0, 1, 300, 3000])
@pytest.mark.parametrize("joints", [1, 6, 7])
def test_what_is_written_reads_back_to_the_same_bits(rng, tmp_path, n, joints):
    log = some_log(rng, n, joints)
    write_mcap(log, tmp_path / "log.mcap")
    back = read_mcap(tmp_path / "log.mcap")
    assert back == log
    assert back.complete


def test_a_log_of_odd_columns_reads_back_too(tmp_path):
    log = Log({"time": np.arange(5.0), "q": np.zeros((5, 3)), "wrench": np.ones((5, 3)), "odd": np.ones((5, 2))})
    write_mcap(log, tmp_path / "log.mcap")
    assert read_mcap(tmp_path / "log.mcap") == log


def test_equal_logs_make_equal_files(rng, tmp_path):
    log = some_log(rng)
    for name in ("a", "b"):
        write_mcap(log, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_reader_finds_the_same_messages(rng, tmp_path):
    """The messages, decoded by the MCAP project's own packages, checksums and index included."""
    reader = pytest.importorskip("mcap.reader", reason="the package mcap is not installed")
    decoder = pytest.importorskip("mcap_ros2.decoder", reason="the package mcap-ros2-support is not installed")
    log = some_log(rng, 1500)
    log = dataclasses.replace(log, columns={**log.columns, "time": 0.4 * log.time})  # the last note is behind its end
    log = dataclasses.replace(log, events=({"time_s": 0.5, "end_s": None}, {"time_s": 0.5, "end_s": 0.7}))
    names = [f"joint_{i + 1}" for i in range(6)]
    write_mcap(log, tmp_path / "log.mcap", joints=names)
    with (tmp_path / "log.mcap").open("rb") as file:
        mcap = reader.make_reader(file, validate_crcs=True, decoder_factories=[decoder.DecoderFactory()])
        assert mcap.get_header().profile == "ros2"
        statistics = mcap.get_summary().statistics
        assert statistics.message_start_time == round(log.time[0] * 1e9)
        assert statistics.message_end_time == round(0.8 * 1e9)  # of the last note
        found: dict[str, list] = {}
        for schema, channel, message, ros in mcap.iter_decoded_messages():
            found.setdefault(channel.topic, []).append((schema.name, message, ros))
        assert [m.name for m in mcap.iter_metadata()] == ["tangere"]
    assert statistics.message_count == sum(map(len, found.values()))
    states = found["/joint_states"]
    assert states[0][0] == "sensor_msgs/msg/JointState"
    assert list(states[0][2].name) == names
    for column, field in (("q", "position"), ("qd", "velocity"), ("tau", "effort")):
        assert np.array_equal([getattr(ros, field) for _, _, ros in states], log[column], equal_nan=True)
    stamps = [ros.header.stamp.sec + 1e-9 * ros.header.stamp.nanosec for _, _, ros in states]
    assert np.abs(np.array(stamps) - log.time).max() < 1e-9
    assert [m.log_time for _, m, _ in states] == np.rint(log.time * 1e9).astype(int).tolist()
    assert [m.sequence for _, m, _ in states] == list(range(1500))
    assert np.array_equal([ros.effort for _, _, ros in found["/tangere/residual"]], log["residual"])
    assert found["/tangere/residual"][0][2].position == []
    assert found["/tangere/wrench"][0][0] == "geometry_msgs/msg/WrenchStamped"
    force = [[ros.wrench.force.x, ros.wrench.torque.z] for _, _, ros in found["/tangere/wrench"]]
    assert np.array_equal(force, log["wrench"][:, [0, 5]])
    labels = [(d.label, d.size) for d in found["/tangere/columns"][0][2].layout.dim]
    assert labels == [("time", 1), ("cost", 1)]
    assert [ros.data[0] for _, _, ros in found["/tangere/columns"]] == log.time.tolist()
    assert [ros.msg for _, _, ros in found["/tangere/notes"]] == [note.text for note in log.notes]
    assert [m.sequence for _, m, _ in found["/tangere/notes"]] == [0, 1, 2]
    assert [m.log_time for _, m, _ in found["/tangere/events"]] == [500_000_000, 700_000_000]  # begun, ended
    blocks = [ros for _, _, ros in found["/tangere/blocks"]]
    sizes = [[(d.label, d.size) for d in ros.layout.dim] for ros in blocks]
    assert sizes == [[("rows", n), ("qdd_des", 6), ("wrench_true", 6), ("T_des", 12)] for n in (1024, 476)]
    assert [len(ros.data) for ros in blocks] == [8 * 24 * n for n in (1024, 476)]


def test_another_reader_can_seek_by_time(rng, tmp_path):
    reader = pytest.importorskip("mcap.reader", reason="the package mcap is not installed")
    log = some_log(rng, 2500)
    write_mcap(log, tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as file:
        mcap = reader.make_reader(file)
        ns = np.rint(log.time * 1e9).astype(int)
        first, last = int(ns[1200]), int(ns[1300])
        some = list(mcap.iter_messages(topics=["/joint_states"], starting_at=first, ending_before=last))
    assert [m.log_time for _, _, m in some] == ns[1200:1300].tolist()


@pytest.mark.parametrize("compression", ["ZSTD", "LZ4"])
def test_files_that_other_tools_compressed(rng, tmp_path, compression):
    """The same records through the MCAP project's writer, with compressed chunks."""
    writer = pytest.importorskip("mcap.writer", reason="the package mcap is not installed")
    reader = pytest.importorskip("mcap.reader")
    log = some_log(rng)
    write_mcap(log, tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as source, (tmp_path / "small.mcap").open("wb") as target:
        mcap = reader.make_reader(source)
        out = writer.Writer(target, compression=getattr(writer.CompressionType, compression))
        out.start()
        for metadata in mcap.iter_metadata():
            out.add_metadata(metadata.name, metadata.metadata)
        numbers = {}
        for schema, channel, message in mcap.iter_messages():
            if channel.topic not in numbers:
                kind = out.register_schema(schema.name, schema.encoding, schema.data)
                numbers[channel.topic] = out.register_channel(channel.topic, "cdr", kind, channel.metadata)
            out.add_message(numbers[channel.topic], message.log_time, message.data, message.publish_time)
        out.finish()
    assert read_mcap(tmp_path / "small.mcap") == log


def test_a_file_cut_anywhere_gives_its_whole_chunks(rng, tmp_path):
    log = some_log(rng, 3000)
    write_mcap(log, tmp_path / "log.mcap")
    data = (tmp_path / "log.mcap").read_bytes()
    lengths = set()
    for cut in [*rng.integers(6000, len(data) - 30, 40).tolist(), len(data) - 30]:
        (tmp_path / "cut.mcap").write_bytes(data[:cut])
        part = read_mcap(tmp_path / "cut.mcap")
        assert not part.complete
        for name, array in part.columns.items():
            assert array.tobytes() == log[name][: len(part)].tobytes()
        lengths.add(len(part))
    assert lengths == {0, 1024, 2048, 3000}
    assert part.problems


def test_a_file_cut_in_its_head_is_empty_or_refused(rng, tmp_path):
    write_mcap(some_log(rng, 10), tmp_path / "log.mcap")
    data = (tmp_path / "log.mcap").read_bytes()
    head = data.index(struct.pack("<HH", 1, 1) + struct.pack("<I", 13) + b"/joint_states")
    refused = 0
    for cut in range(8, head + 100, 7):
        (tmp_path / "cut.mcap").write_bytes(data[:cut])
        try:
            log = read_mcap(tmp_path / "cut.mcap")
        except InvalidValue:
            refused += 1
        else:
            assert (len(log), log.complete) == (0, False)
    assert 0 < refused < head


def test_index_and_checksum_point_where_the_format_says(rng, tmp_path):
    """Byte by byte, since lenient readers do not look: message indexes, chunk indexes and the summary's checksum."""
    zstandard = pytest.importorskip("zstandard")
    log = some_log(rng, 1500)
    write_mcap(log, tmp_path / "log.mcap")
    data = (tmp_path / "log.mcap").read_bytes()
    summary_start, _, crc = struct.unpack_from("<QQI", data, len(data) - 28)
    assert zlib.crc32(data[summary_start:-12]) == crc
    at, seen = summary_start, 0
    while data[at] != 0x02:
        opcode, length = struct.unpack_from("<BQ", data, at)
        if opcode == 0x08:
            start, end, chunk, chunk_length, places = struct.unpack_from("<QQQQI", data, at + 9)
            assert data[chunk] == 0x06
            size, crc = struct.unpack_from("<QI", data, chunk + 9 + 16)
            name, small = data[chunk + 41 : chunk + 45], struct.unpack_from("<Q", data, chunk + 45)[0]
            assert name == b"zstd"
            assert chunk + 53 + small == chunk + chunk_length
            assert struct.unpack_from("<QQ", data, at + 9 + length - 16) == (small, size)
            inside = zstandard.ZstdDecompressor().decompress(data[chunk + 53 : chunk + 53 + small])
            assert (len(inside), zlib.crc32(inside)) == (size, crc)
            for place in range(at + 45, at + 45 + places, 10):
                channel, index = struct.unpack_from("<HQ", data, place)
                assert data[index] == 0x07
                assert struct.unpack_from("<H", data, index + 9)[0] == channel
                (entries,) = struct.unpack_from("<I", data, index + 11)
                for entry in range(index + 15, index + 15 + entries, 16):
                    ns, offset = struct.unpack_from("<QQ", data, entry)
                    found = struct.unpack_from("<BQHIQQ", inside, offset)
                    assert (found[0], found[2], found[4]) == (0x05, channel, ns)
                    assert start <= ns <= end
                    seen += 1
        at += 9 + length
    # one message on each of eight topics per row, one block of the other columns in each of two chunks
    assert seen == 8 * 1500 + 2 + len(log.notes)


CHILD = """
import sys, time, numpy as np
from tangere.logs.mcap_log import McapFile, McapSink
from tangere.loop.recorder import Recorder
file = McapFile(sys.argv[1], {"time": 0, "q": 6, "residual": 6})
recorder = Recorder(["time"], {"q": 6, "residual": 6}, McapSink(file))
begin = time.perf_counter()
recorder.note(0.0, "begun")
while True:
    now = time.perf_counter()
    row = np.full(6, now - begin)
    recorder.append((now - begin,), (row, -row), now)
    print(now - begin, flush=True)
    time.sleep(0.01)
"""


def test_a_killed_process_leaves_everything_up_to_the_last_half_second(tmp_path):
    """Also in its first second: what a kill may cost is 0.5 s of wall time, whenever it comes."""
    for k, life in enumerate((0.05, 0.6, 1.45)):
        path = tmp_path / f"{k}.mcap"
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
        try:
            told = [0.0]
            while told[-1] < life:
                told.append(float(child.stdout.readline()))
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
        log = read_mcap(path)
        assert not log.complete
        # handed on every 0.2 s, at the first row after it; the writer's thread needs some ms (0.2 s on a busy machine).
        # A row comes every 10 ms: of a longer wait, in which the machine did not let the child run, 0.25 s count
        lost = np.diff([at for at in told if at >= (log.time[-1] if len(log) else 0.0)])
        assert np.sum(np.minimum(lost, 0.25)) < 0.5
        assert np.array_equal(log["q"], np.repeat(log.time[:, None], 6, axis=1))
        assert np.array_equal(log["residual"], -log["q"])
    assert log.notes[0].text == "begun"


class Touch:
    def record(self):
        return {"time_s": 2.5, "kind": "unknown"}


def test_the_sink_writes_what_it_is_given_and_never_raises(rng, tmp_path, monkeypatch):
    columns = {"time": 0, "q": 2}
    sink = McapSink(McapFile(tmp_path / "a.mcap", columns))
    rows = rng.normal(size=(500, 3))
    rows[:, 0] = np.arange(500)
    sink.note(Note(1.0, "first"))
    sink.rows(rows[:200])
    sink.rows(rows[200:])
    sink.note(Note(499.0, "last"))
    sink.event(Touch())
    sink.close()
    sink.close()
    log = read_mcap(tmp_path / "a.mcap")
    assert sink.error == ""
    assert log.complete
    assert np.array_equal(log["q"], rows[:, 1:])
    assert [note.text for note in log.notes] == ["first", "last"]
    assert log.events == ({"time_s": 2.5, "kind": "unknown"},)

    file = McapFile(tmp_path / "b.mcap", columns)
    file.write(rows[:10])

    def full(data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file, "_write", full)
    sink = McapSink(file)
    sink.rows(rows)
    sink.close()
    assert "No space left" in sink.error
    part = read_mcap(tmp_path / "b.mcap")
    assert (len(part), part.complete) == (10, False)


def test_the_loop_pays_little_while_a_second_is_encoded(tmp_path):
    """Handing on costs a queue entry; what is computed of a thousand rows is another thread's."""
    sink = McapSink(McapFile(tmp_path / "a.mcap", {"time": 0, "q": 90}))
    rows = np.zeros((1000, 91))
    costs = []
    for _ in range(20):
        begin = time.thread_time()
        sink.rows(rows)
        costs.append(time.thread_time() - begin)
        time.sleep(0.02)
    sink.close()
    assert np.median(costs) < 2e-4  # [s] of this thread: 5 us as a rule; encoding a thousand rows takes milliseconds


def test_what_is_no_log_is_refused(rng, tmp_path):
    with pytest.raises(InvalidValue, match="cannot read"):
        read_mcap(tmp_path / "absent.mcap")
    (tmp_path / "a").write_bytes(b"timestamp,actual_q_0\n")
    with pytest.raises(InvalidValue, match="not an MCAP file"):
        read_mcap(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(InvalidValue, match="holds no log"):
        read_mcap(tmp_path / "a")
    with pytest.raises(InvalidValue, match="cannot write"):
        McapFile(tmp_path / "no" / "a.mcap", {"time": 0})
    with pytest.raises(InvalidValue, match="cannot write"):
        write_mcap(some_log(rng, 3), tmp_path / "no" / "a.mcap")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_the_head_is_there_from_the_first_moment(tmp_path, monkeypatch):
    """No moment at which the file exists and cannot be read: it appears with its head in it."""
    seen = []
    write = McapFile._write

    def watched(self, data):
        seen.append((tmp_path / "a.mcap").exists())
        write(self, data)

    monkeypatch.setattr(McapFile, "_write", watched)
    file = McapFile(tmp_path / "a.mcap", {"time": 0, "q": 2})
    assert not any(seen)
    log = read_mcap(tmp_path / "a.mcap")
    assert (len(log), log.complete, list(log.columns)) == (0, False, ["time", "q"])
    file.write(np.ones((1, 3)))
    assert len(read_mcap(tmp_path / "a.mcap")) == 1
    file.abandon()


def test_the_start_is_the_time_of_day_and_columns_count_from_it(tmp_path):
    before = time.time_ns()
    file = McapFile(tmp_path / "a.mcap", {"time": 0})
    file.write(np.array([[0.25]]))
    file.close()
    log = read_mcap(tmp_path / "a.mcap")
    assert before <= log.start_ns <= time.time_ns()
    assert log.time.tolist() == [0.25]
    write_mcap(log, tmp_path / "b.mcap")
    assert (tmp_path / "b.mcap").read_bytes() == (tmp_path / "a.mcap").read_bytes()


def test_without_zstandard_a_log_is_plain_and_says_so(rng, tmp_path, monkeypatch):
    log = some_log(rng)
    write_mcap(log, tmp_path / "small.mcap")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    write_mcap(log, tmp_path / "log.mcap")
    back = read_mcap(tmp_path / "log.mcap")
    assert "not compressed: zstandard is not installed" in back.notes[0].text
    assert back.notes[1:] == log.notes
    assert all(back[name].tobytes() == log[name].tobytes() for name in log.columns)
    with pytest.raises(MissingExtra, match=r"tangere\[log\]"):
        read_mcap(tmp_path / "small.mcap")


def test_the_statistics_count_what_is_in_the_file(rng, tmp_path):
    reader = pytest.importorskip("mcap.reader", reason="the package mcap is not installed")
    write_mcap(some_log(rng, 3000), tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as file:
        summary = reader.make_reader(file).get_summary()
        messages = sum(1 for _ in reader.make_reader(file).iter_messages())
    assert summary.statistics.chunk_count == len(summary.chunk_indexes) == 3
    assert summary.statistics.metadata_count == len(summary.metadata_indexes) == 1
    assert summary.statistics.attachment_count == 0
    assert (summary.statistics.message_count, summary.statistics.channel_count) == (messages, len(summary.channels))


def test_an_overview_has_a_share_of_the_chunks_from_the_first_to_the_last(rng, tmp_path, monkeypatch):
    log = some_log(rng, 30 * 1024)
    write_mcap(log, tmp_path / "log.mcap")
    pieces = mcap_pieces.Pieces(tmp_path / "log.mcap")
    for share, chunks in ((0.2, 6), (1e-6, 2), (3.0, 30)):
        monkeypatch.setattr(mcap_pieces, "OVERVIEW", share * pieces.size)
        seen = pieces.overview()
        assert len(seen) == chunks * 1024
        assert (seen.time[0], seen.time[-1]) == pytest.approx((log.time[0], log.time[-1]))
