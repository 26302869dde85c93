"""One row per delivery: a message's whole life rebuilt from its records in a single aggregation.

All running values are numbers, packed where the latest record must win, so that the aggregation stays in fixed memory
and off the sort path. Completeness is checked on the way: every change of a delivery has a number, each number is a
bit, and the sum of the bits of a complete and unrepeated life is exactly ``2**n - 1``.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..storage.schema import ENDED_OTHERWISE, SETTLED, STATES, struct

IDENTITY: Final = ("project", "queue", "queue_uid", "message_id", "delivery_id")
"""What identifies a delivery; a dead letter keeps its message id in another queue."""

BITS: Final = 62
"""Steps that fit into the bits of a long; longer lives are checked one by one."""

_DUE_BITS: Final = 42
"""Bits of an epoch time in milliseconds."""

_ASKED_BIT: Final = 7
"""Where the packed last record says whether it is a person's request for a try: above its state's code."""

DELIVERY: Final = struct(
    "string " + " ".join(IDENTITY),
    "string subscriber_id",
    "boolean pull notification",
    "timestamp accepted_at expires_at",
    "bigint body_size",
    "string state",
    "boolean scheduled asked",
    "timestamp due_at settled_at",
    "bigint attempts polls",
    "int won_attempt",
    "boolean first_won",
    "timestamp first_answer_at held_at acknowledged_at last_record_at",
    "bigint leads_message owed acceptances settlements wins",
    "boolean went_on",
    "bigint steps",
    "int base_step top_step",
    "bigint step_bits releases release_bits",
    "int top_attempt",
    "bigint attempt_bits",
)
"""Columns of a delivery's row.

``attempts`` counts requests, ``polls`` those of them that only asked for an earlier one's outcome; ``won_attempt`` is
the number of the one that was taken for good. ``held_at``: end of the last attempt answered 202. ``leads_message`` is
1 for the first delivery of its message, so that its sum counts messages; ``owed`` is 0 for the one row of a message
owed to nobody. ``asked``: the last record is a person's request for a try. ``top_attempt`` and ``attempt_bits``: the
numbers of attempts, but of notifications'. ``wins``: records that say "delivered"; ``went_on``: records after the
end. From ``steps`` on: what :func:`suspicious` needs.
"""

KEPT_DELIVERY: Final = StructType([*DELIVERY.fields, *struct("string standing").fields])
"""Columns of the table that is kept by day: also how the delivery stands, as the night judged it."""


def delivery_events(records: DataFrame) -> DataFrame:
    """One row per record and delivery it is about: an acceptance is about each delivery owed.

    Adds ``rank`` (order within a delivery), ``step`` (a number of which none may be missing) and ``owed``; ``at`` and
    the rest stay.
    """
    accepted = F.col("kind") == "accepted"
    nobody = F.array(F.concat("message_id", F.lit(".-")))
    about = F.when(accepted, F.when(F.size("owed") > 0, F.col("owed")).otherwise(nobody)).otherwise(
        F.array("delivery_id")
    )
    pull = F.col("dialect") == "pull"
    phase = F.when(accepted, 0).when(F.col("kind") == "reserved", 1).when(F.col("kind") == "released", 2).otherwise(3)
    count = F.coalesce("reservations", F.lit(0))
    return (
        records.withColumn("owed_count", F.when(accepted, F.size("owed")))
        .select("*", F.posexplode(about).alias("place", "about"))
        .withColumns(
            {
                "delivery_id": F.col("about"),
                "accepted": accepted,
                "pull": pull,
                "notification": F.col("dialect") == "notifications",
                "rank": F.when(pull, count * 4 + phase).otherwise(F.coalesce("version", F.lit(0))).cast("long"),
                "step": F.when(~pull, F.col("version")).when(F.col("kind") == "reserved", F.col("reservations")),
            }
        )
        .drop("about")
    )


def is_attempt() -> Column:
    """Whether a record tells of a request to the subscriber."""
    return F.col("kind").isin("attempt", "poll")


def is_late_answer() -> Column:
    """Whether a request was under way when something else ended its delivery."""
    return is_attempt() & F.col("state").isin(*ENDED_OTHERWISE)


def is_end() -> Column:
    """Whether a record ends its delivery."""
    return F.col("state").isin(*SETTLED) & ~is_late_answer()


def is_win() -> Column:
    """Whether a record says that its delivery arrived."""
    return (is_attempt() & (F.col("verdict") == "delivered")) | F.col("kind").isin("acknowledged", "delivered")


def is_by_itself() -> Column:
    """Whether no person asked for what a record tells: what one asked for may follow an end, and arrive a second time;
    it is counted, but contradicts nothing.
    """
    return ~F.coalesce("manual", F.lit(False))


def delivery_rows(records: DataFrame) -> DataFrame:
    """One row per delivery, as :data:`DELIVERY` describes it."""
    accepted, kind, state = F.col("accepted"), F.col("kind"), F.col("state")
    asked, late, settles, wins, by_itself = is_attempt(), is_late_answer(), is_end(), is_win(), is_by_itself()
    states = F.array(*map(F.lit, STATES))
    code = F.greatest(F.call_function("array_position", states, state), F.lit(1)) - 1
    requested = (kind == "rescheduled") & ~by_itself
    flags = F.shiftleft(requested.cast("long"), _ASKED_BIT) + F.coalesce("scheduled", F.lit(False)).cast("long")
    last = F.shiftleft("rank", 8) + F.shiftleft(code, 1) + flags
    due = F.shiftleft("rank", _DUE_BITS) + F.coalesce(F.unix_millis("due_at"), F.lit(0))
    release = F.when(kind == "released", F.col("reservations"))
    numbered = F.when(asked & ~F.col("notification"), F.col("attempt"))
    grouped = (
        delivery_events(records)
        .groupBy(*IDENTITY)
        .agg(
            F.max(F.col("pull").cast("int")).alias("pull"),
            F.max(F.col("notification").cast("int")).alias("notification"),
            F.max("accepted_at").alias("accepted_at"),
            F.max("expires_at").alias("expires_at"),
            F.max("body_size").alias("body_size"),
            F.max(last).alias("last"),
            F.max(due).alias("due"),
            F.max(F.when(settles, F.col("at"))).alias("settled_at"),
            _total(asked).alias("attempts"),
            _total(kind == "poll").alias("polls"),
            F.max(F.when(wins, F.col("attempt"))).alias("won_attempt"),
            F.max((wins & (F.col("attempt") == 1)).cast("int")).alias("first_won"),
            F.min(F.when(asked, F.col("finished_at"))).alias("first_answer_at"),
            F.max(F.when(asked & (F.col("verdict") == "reserved"), F.col("finished_at"))).alias("held_at"),
            F.max(F.when(kind == "acknowledged", F.col("at"))).alias("acknowledged_at"),
            F.max("at").alias("last_record_at"),
            _total(accepted & (F.col("place") == 0) & by_itself).alias("leads_message"),
            _total(accepted & (F.col("owed_count") > 0)).alias("owed"),
            _total(accepted).alias("acceptances"),
            _total(settles & by_itself).alias("settlements"),
            _total(wins & by_itself).alias("wins"),
            F.max(F.when(settles, F.col("rank"))).alias("end"),
            F.max(F.when(~settles & ~late & by_itself, F.col("rank"))).alias("open"),
            F.count("step").alias("steps"),
            F.max(F.when(accepted & F.col("pull"), F.col("reservations"))).alias("base_step"),
            # What ends or gives back a pull message tells how often it was reserved, which shows reservations lost at
            # the end of a life.
            F.max(F.greatest("step", F.when(F.col("pull"), F.col("reservations")))).alias("top_step"),
            F.sum(_bit(F.col("step"))).alias("step_bits"),
            F.count(release).alias("releases"),
            F.sum(_bit(release)).alias("release_bits"),
            F.max(numbered).alias("top_attempt"),
            F.sum(_bit(numbered)).alias("attempt_bits"),
        )
    )
    due_ms = F.col("due").bitwiseAND((1 << _DUE_BITS) - 1)
    state_code = F.shiftright(F.col("last"), 1).bitwiseAND(63)
    return grouped.withColumns(
        {
            "subscriber_id": F.substring_index("delivery_id", ".", -1),
            "pull": F.col("pull") == 1,
            "notification": F.col("notification") == 1,
            "state": F.get(states, state_code.cast("int")),
            "scheduled": F.col("last").bitwiseAND(1) == 1,
            "asked": F.col("last").bitwiseAND(1 << _ASKED_BIT) > 0,
            "due_at": F.when(due_ms > 0, F.timestamp_millis(due_ms)),
            "first_won": F.col("first_won") == 1,
            "went_on": F.coalesce(F.col("open") > F.col("end"), F.lit(False)),
            "base_step": F.coalesce("base_step", F.lit(0)),
        }
    ).select(*DELIVERY.fieldNames())


def suspicious(deliveries: DataFrame) -> DataFrame:
    """Those that :func:`is_suspicious`. Usually none."""
    return deliveries.where(is_suspicious())


def is_suspicious() -> Column:
    """Whether a delivery's records do not add up to one complete life, or it lived too long to tell by bits."""
    whole = F.expr("shiftleft(1L, top_step) - shiftleft(1L, base_step)")
    complete = (F.col("top_step") <= BITS) & (F.col("steps") == F.col("top_step") - F.col("base_step"))
    steps_fine = F.col("top_step").isNull() | (complete & (F.coalesce("step_bits", F.lit(0)) == whole))
    once = (F.col("acceptances") == 1) & (F.col("settlements") <= 1) & (F.col("wins") <= 1) & ~F.col("went_on")
    return ~(steps_fine & once & _attempts_whole() & ~_released_twice())


def is_repeated() -> Column:
    """Whether some record of a delivery may be there more than once.

    Also right for those whose life began before the records read.
    """
    steps_repeat = F.col("top_step").isNotNull() & (
        (F.col("top_step") > BITS) | (F.bit_count(F.coalesce("step_bits", F.lit(0))) != F.col("steps"))
    )
    ends_repeat = (F.col("settlements") > 1) | (F.col("acceptances") > 1)
    # Attempts of notifications have no number, so those sent twice are looked at too.
    sends_repeat = F.col("notification") & (F.col("attempts") > 1)
    return steps_repeat | ends_repeat | sends_repeat | _released_twice()


def _attempts_whole() -> Column:
    """Whether attempts are numbered without a gap, which those of notifications are not."""
    tried = ~F.col("notification") & (F.col("attempts") > 0)
    top = F.coalesce("top_attempt", F.lit(0))
    whole = (
        (top <= BITS) & (top == F.col("attempts")) & (F.col("attempt_bits") == F.expr("shiftleft(1L, top_attempt) - 1"))
    )
    return ~tried | F.coalesce(whole, F.lit(False))


def _released_twice() -> Column:
    return (F.col("releases") > 0) & (F.coalesce(F.bit_count("release_bits"), F.lit(0)) != F.col("releases"))


def _total(condition: Column) -> Column:
    return F.sum(condition.cast("long"))


def _bit(step: Column) -> Column:
    """The bit of a step, null where there is none or it does not fit."""
    one = F.lit(1).cast("long")
    return F.when(step.between(1, BITS), F.call_function("shiftleft", one, step.cast("int") - 1))
