"""The runtime's boto3 is new enough, or the function does not start."""

from __future__ import annotations

import botocore
import pytest

from pushhub.cloud.clients import Clients, OldSdkError, check_version


@pytest.mark.parametrize("version", ["1.34.162", "1.35.1", "1.9.999"])
def test_an_old_sdk_fails_the_start_by_name(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a runtime whose boto3 does not know what the hub writes records with
    monkeypatch.setattr(botocore, "__version__", version)
    # When a function makes its first client, then it fails, and says what is needed
    with pytest.raises(OldSdkError, match=r"botocore .* is too old: the hub needs 1\.35\.2"):
        Clients().of("s3")


@pytest.mark.parametrize("version", ["1.35.2", "1.42.0", "2.0.0", botocore.__version__])
def test_a_new_one_is_taken(version: str) -> None:
    check_version(version)
