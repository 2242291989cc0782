"""Hundreds of connections against a small queue: refusals that clients can act on, and answers for those who do."""
from overload import overload, percentiles


def test_a_crowd_is_refused_politely():
    """Every connection asks once, all at the same time; the official client is among them and gets its answer."""
    report = overload(connections=300, queue=4, seconds=0)
    assert report["problems"] == []
    assert sum(report["statuses"].values()) >= 300
    assert report["statuses"][429] > 100 and report["statuses"][200] >= 4
    assert report["official_client"]["tokens"] == 4


def test_percentiles():
    assert percentiles(range(1000)) == {"p50": 500, "p90": 900, "p99": 990, "max": 999, "count": 1000}
