"""Files that are damaged, cut off or no trace at all: each is refused with its name and what is wrong with it."""

import gzip
from pathlib import Path

import pytest

from spinney.sim.replay.formats.tables import InvalidTrace
from spinney.sim.replay.reading import FORMATS, Wanted, read_trace
from tests.sim.replay.test_readers import openb, philly

TABLES = sorted({*FORMATS} - {"recorded"})


def a_swf_line(job: object = 1, submitted: object = 0, run: object = 5, procs: object = 4, stated: object = 10) -> str:
    """Return a line of a job; the rest of it is plain."""
    return f"{job} {submitted} -1 {run} {procs} -1 -1 {procs} {stated} -1 1 1 1 1 1 1 -1 -1\n"


def swf(directory: Path, *lines: str, header: str = "; MaxProcs: 16\n; MaxNodes: 2\n") -> Path:
    """Write jobs in the Standard Workload Format."""
    path = directory / "jobs.swf"
    path.write_text(header + "".join(lines))
    return path


def _packed(directory: Path) -> bytearray:
    return bytearray(gzip.compress(swf(directory, *(a_swf_line(job) for job in range(1, 2000))).read_bytes()))


@pytest.mark.parametrize("form", [None, "swf", "dlrm"])
def test_a_file_that_was_half_fetched_is_damaged(tmp_path: Path, form: str | None) -> None:
    """Half a packed file is refused as damaged, whether its format is recognised or named."""
    packed = _packed(tmp_path)
    path = tmp_path / "half.swf.gz"
    for length in (15, len(packed) // 2, len(packed) - 4):
        path.write_bytes(packed[:length])
        with pytest.raises(InvalidTrace, match=r"half.swf.gz: (is damaged: .*; fetch or copy it again|no column)"):
            read_trace(path, Wanted(), form)


def test_a_bit_that_flipped_is_noticed(tmp_path: Path) -> None:
    """A packed file whose content is not what was packed is damaged, wherever the fault is."""
    packed = _packed(tmp_path)
    path = tmp_path / "flip.swf.gz"
    for place in (2, 100, len(packed) // 2, len(packed) - 6):
        flipped = packed.copy()
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(InvalidTrace, match=r"flip\.swf\.gz"):
            read_trace(path, Wanted(), "swf")


@pytest.mark.parametrize("form", [None, *TABLES])
def test_what_is_no_text_is_said_to_be_none(tmp_path: Path, form: str | None) -> None:
    """Bytes that are no text are refused with what is expected, in every format."""
    path = tmp_path / "random.bin"
    path.write_bytes(bytes(range(128, 256)) * 20)
    nodes = openb(tmp_path).with_name("openb_nodes.csv" if form == "openb" else "philly_vcs.csv")
    philly(tmp_path)
    wanted = Wanted(nodes=nodes) if form in ("openb", "philly") else Wanted()
    with pytest.raises(InvalidTrace, match=r"random.bin:1: is no text: .*expected UTF-8 or Latin-1, .*iconv"):
        read_trace(path, wanted, form)


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    """A table may have a hundred thousand lines; a byte of none of the encodings is found by the number of its line."""
    path = swf(tmp_path, a_swf_line(1), a_swf_line(2))
    path.write_bytes(gzip.compress(path.read_bytes() + b"; by \x93us\x94\n" + a_swf_line(3).encode()))
    with pytest.raises(InvalidTrace, match=r"jobs.swf:5: is no text: "):
        read_trace(path, Wanted())


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    """No format is to be named for a file in which there is nothing."""
    path = tmp_path / "nothing.csv"
    path.touch()
    with pytest.raises(
        InvalidTrace, match=r"nothing.csv: its first line is empty; expected a trace of the format dlrm, "
    ):
        read_trace(path, Wanted())


@pytest.mark.parametrize("form", ["dlrm", "swf"])
def test_a_directory_is_no_table(tmp_path: Path, form: str) -> None:
    """A directory under the name of a format of files is refused, with its name."""
    with pytest.raises(InvalidTrace, match=f"{tmp_path.name}: cannot be read: Is a directory"):
        read_trace(tmp_path, Wanted(), form)


def test_a_packed_file_is_known_by_its_content(tmp_path: Path) -> None:
    """A gzipped file needs no ending to be unpacked."""
    path = tmp_path / "jobs"
    path.write_bytes(_packed(tmp_path))
    assert len(read_trace(path, Wanted()).jobs) == 1999


def test_a_line_that_is_cut_off_is_named(tmp_path: Path) -> None:
    """A table that ends in the middle of a line is refused with the line and the column that is missing."""
    path = openb(tmp_path)
    path.write_text(path.read_text() + "p3,4000\n")
    with pytest.raises(InvalidTrace, match=r"small.csv:5: ends before column 'memory_mib'; is the file complete\?"):
        read_trace(path, Wanted())


def test_a_number_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    """A table may have a hundred thousand lines."""
    path = openb(tmp_path)
    header, first, *others = path.read_text().splitlines()
    path.write_text("\n".join([header, first, others[0].replace(",", ",banana", 1), *others[1:]]))
    with pytest.raises(InvalidTrace, match=r"small.csv:3: column 'cpu_milli': found 'banana\d+', expected a number"):
        read_trace(path, Wanted())


@pytest.mark.parametrize(("rows", "found"), [("2,0\n-1,1\n", "'-1'"), ("2,0\nx,1\n", "'x'"), ("2,0\n3,1\n", "'3'")])
def test_an_order_that_names_no_row_is_refused(tmp_path: Path, rows: str, found: str) -> None:
    """What stands in the order of arrival is the number of a row; anything else is named."""
    path = openb(tmp_path)
    path.with_name("openb_order_small.csv").write_text(f"42,43\n{rows}")
    with pytest.raises(InvalidTrace, match=f"openb_order_small.csv:3: found {found}, expected a row from 0 to 2"):
        read_trace(path, Wanted(seed=42))
