"""What benchmarks print is compared line by line with what they printed before."""

from benchmarks.revisions import figures


def test_a_figure_has_the_same_name_in_every_run() -> None:
    """What else stands in its line, such as rates by the clock, differs from run to run and is no part of the name."""
    first = (
        "create pods          401 /s      1289 /CPU s    2494.1 ms\nembedded server\n  get    93 /s     0.250 CPU ms\n"
    )
    second = (
        "create pods           93 /s      1300 /CPU s   10757.3 ms\nembedded server\n  get   111 /s     0.200 CPU ms\n"
    )

    assert figures(first) == {"create pods": 1289.0, "embedded server get": 4.0}
    assert figures(second) == {"create pods": 1300.0, "embedded server get": 5.0}
