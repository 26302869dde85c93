"""Makes the dictionary that stored bodies are compressed with, and measures what it is worth.

    .venv/bin/python -m bench.body_dictionary [--rounds 5] [--write] [--save docs/figures/bodies.md]

The dictionary is what bodies of a sender have in common whatever their values are, found by comparing three of them,
for each sender of bench/webhook_bodies.py. ``--write`` writes it into the hub. Names that many APIs use, chosen by
hand, were tried in addition: 1.4 KB of them made unknown bodies less than a hundredth smaller.

A sender that is in the dictionary is not what most bodies are. So each body is also compressed with a dictionary that
was made without its sender (*unknown sender*), which is what to plan with. CPU is of this machine, the shortest of the
rounds. Corpus: 240 bodies for each size, of the senders that have bodies of about that size; and the corpus as it is,
from 0.3 to 6.5 KB. A unit is a write unit of DynamoDB for an item with the body and the 189 bytes of a message's other
attributes.
"""

from __future__ import annotations

import difflib
import time
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from bench.harness import ROOT, Page, cells
from bench.webhook_bodies import SENDERS, Body, Draw, about, body, corpus

MODULE = ROOT / "layers/pushhub/pushhub/engine/model/body_dictionary.py"
LEVELS = (1, 3, 6, 9)
SIZES = (400, 2048, 6144)
OTHER_ATTRIBUTES = 189
SHORTEST = 4
"""What is shorter is no match to zlib, nearly."""
DRAWN = (1_000, 2_001, 3_002)
"""Seeds of the bodies that are compared: none that a measurement uses."""


@cache
def in_common(sender: str) -> str:
    """What a sender's bodies have in common, short ones and longer ones."""
    found = ""
    for parts in (0, 2):
        one, *others = (body(sender, Draw(seed), parts).content.decode() for seed in DRAWN)
        for other in others:
            matching = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
            one = "".join(one[each.a : each.a + each.size] for each in matching if each.size >= SHORTEST)
        # What has been said once is within reach.
        for piece in one.replace(",", ",\0").split("\0"):
            found += piece if piece not in found else ""
    return found


def dictionary(senders: Sequence[str] = tuple(SENDERS)) -> bytes:
    """A dictionary for bodies of these senders, and of others."""
    found = ""
    for sender in senders:
        for piece in in_common(sender).replace(",", ",\0").split("\0"):
            found += piece if piece not in found else ""
    return found.encode()


@cache
def without(sender: str) -> bytes:
    """The dictionary of somebody who does not know a sender."""
    return dictionary([each for each in SENDERS if each != sender])


def write(path: Path = MODULE) -> None:
    """Write the dictionary into the hub."""
    text = dictionary().decode()
    width = 100
    lines = "\n".join(f"    {text[start : start + width].encode()!r}" for start in range(0, len(text), width))
    path.write_text(
        '"""What many bodies have in common. Written by ``python -m bench.body_dictionary --write``.\n\n'
        "Bodies that were stored with it are read with it: a new one is added beside it, and takes its place for new\n"
        'bodies only.\n"""\n\n'
        f"# fmt: off\nDICTIONARY: bytes = (\n{lines}\n)\n# fmt: on\n"
    )


def deflated(content: bytes, level: int, words: bytes) -> bytes:
    """A body as zlib writes it."""
    packing = zlib.compressobj(level, zdict=words) if words else zlib.compressobj(level)
    return packing.compress(content) + packing.flush()


def units(size: float) -> int:
    """Write units of an item with a body of so many bytes."""
    return -(-(int(size) + OTHER_ATTRIBUTES) // 1024)


Words = Callable[[Body], bytes]
WORDS: dict[str, Words] = {
    "none": lambda _: b"",
    "known sender": lambda _: dictionary(),
    "unknown sender": lambda each: without(each.sender),
}


def row(bodies: Sequence[Body], words: Words, level: int, rounds: int) -> list[str]:
    """Mean size, share of the body, units, and microseconds to compress and to open."""
    known = [words(each) for each in bodies]
    took = opened = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        packed = [deflated(each.content, level, one) for each, one in zip(bodies, known, strict=True)]
        between = time.process_time()
        for each, one, stored in zip(bodies, known, packed, strict=True):
            reader = zlib.decompressobj(zdict=one) if one else zlib.decompressobj()
            assert reader.decompress(stored, len(each.content)) == each.content
        ended = time.process_time()
        took, opened = min(took, between - began), min(opened, ended - between)
    count = len(bodies)
    mean = sum(map(len, packed)) / count
    share = mean * count / sum(len(each.content) for each in bodies)
    written = sum(units(len(each)) for each in packed) / count
    return [
        *cells(".0f", mean),
        f"{share:.0%}",
        f"{written:.2f}",
        *cells(".0f", took / count * 1e6, opened / count * 1e6),
    ]


def main() -> None:
    """Measure, print, save."""
    page = Page("Bodies, compressed", __doc__, rounds=5, write=False)
    if page.options.write:
        write()
    page.tell(f"The dictionary has {len(dictionary()):,} bytes.")
    head = ["dictionary", "level", "bytes", "of the body", "units", "µs to compress", "µs to open"]
    for name, bodies in [
        *((f"About {size:,} bytes", list(about(size, 240))) for size in SIZES),
        ("The corpus", corpus()),
    ]:
        mean = sum(len(each.content) for each in bodies) / len(bodies)
        plain = sum(units(len(each.content)) for each in bodies) / len(bodies)
        senders = len({each.sender for each in bodies})
        page.tell(
            f"## {name}", f"{len(bodies)} of {senders} senders, {mean:,.0f} bytes, {plain:.2f} units as they are."
        )
        page.table(
            head,
            [
                [reported, str(level), *row(bodies, words, level, page.options.rounds)]
                for reported, words in WORDS.items()
                for level in LEVELS
            ],
        )
    page.tell("## By sender, about 2,048 bytes, level 6")
    bodies = list(about(2048, 240))
    page.table(
        ["sender", *("bytes", *WORDS)],
        [
            [
                sender,
                *cells(
                    ".0f",
                    _mean([len(each.content) for each in bodies if each.sender == sender]),
                    *(
                        _mean([len(deflated(each.content, 6, words(each))) for each in bodies if each.sender == sender])
                        for words in WORDS.values()
                    ),
                ),
            ]
            for sender in dict.fromkeys(each.sender for each in bodies)
        ],
    )
    page.save()


def _mean(sizes: Sequence[int]) -> float:
    return sum(sizes) / len(sizes)


if __name__ == "__main__":
    main()
