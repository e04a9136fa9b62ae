"""Results of a loop over three volumes under several namings of files."""

from collections.abc import Iterator
from itertools import product

VOLUMES, PATTERNS = ("local", "premium", "standard"), ("randread", "randwrite")
SIZES, DEPTHS, REPEATS = (4096, 16384, 65536), (1, 4, 16, 64), (1, 2, 3)
# Folder and job of a result; no loop that was seen before writes the last four
NAMINGS = {
    "counted": ("out/{v}", "{v}-{rw}-{bs}-{qd}-{r}"),
    "runs": ("out", "{v}_{rw}_qd{qd}_bs{k}k_run{r}"),
    "folders": ("out/run{r}/{v}/{rw}/{k}k", "{v}-{rw}-{k}k-{qd}"),
    "dated": ("out/2026112{r}-0{r}1500", "2026112{r}-0{r}1500-{v}-{rw}-{k}k-iodepth{qd}"),
    "one job": ("out/{v}/{rw}{k}k{qd}", "{v}-{rw}{k}k{qd}-result-{r}"),
    "words": ("bench/{v}.blocksize={bs}", "rnd-{k}KiB-depth_{qd}.iteration{r}"),
    "letters": ("out", "{v}_{rw}_{k}k_qd{qd}_try{letter}"),
    "hash": ("out", "{hash}"),
    "clock": ("2026-11-2{r}_10.15.00/{v}", "fio.{rw}.{k}kb.q{qd}"),
}


def rows_named(naming: str) -> Iterator[dict[str, object]]:
    """Yield the results of a loop over three volumes, as the importer reads them."""
    folder, name = NAMINGS[naming]
    for number, (v, rw, bs, qd, r) in enumerate(
        product(VOLUMES, PATTERNS, SIZES, DEPTHS, REPEATS), start=1
    ):
        words = {"v": v, "rw": rw, "bs": bs, "k": bs // 1024, "qd": qd, "r": r}
        words |= {"letter": " abc"[r], "hash": f"{number * 2654435761 % 2**32:08x}"}
        job = name.format(**words)
        yield {
            "campaign": "c",
            "run": f"{number:04}",
            "host": "unknown",
            "job": job,
            "group": job,
            "volume": f"/dev/{v}",
            "direction": rw.removeprefix("rand"),
            "rw": rw,
            "block_bytes": bs,
            "iodepth": qd,
            "numjobs": 1,
            "ioengine": "libaio",
            "import_folder": folder.format(**words),
            "iops": 1000.0 * number,
        }
