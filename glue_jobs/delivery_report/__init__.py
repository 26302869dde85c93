"""Turns delivery records into answers: compaction, reports, anomalies, and the proof that nothing was lost.

Runs unchanged on AWS Glue 5.1 and on ``pyspark==3.5.6``; see ``docs/report.md``. Every transform is a pure function
from DataFrames to a DataFrame; only :mod:`.job`, :mod:`.compaction` and :mod:`.storage` read and write.
"""
