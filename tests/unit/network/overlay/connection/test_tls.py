"""Encrypted connections, with certificates made for the test."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import UsageError
from holdfast.model.protocol import Joined
from holdfast.network.overlay.connection.tls import Certificates
from holdfast.network.overlay.wire.fault import ConnectionRefused
from support.certificates import make_certificates
from support.patience import PATIENCE
from support.relay import broker, bundle, node


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"))


def run(story):
    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE))


def certificates_of(folder, **more):
    return Certificates(folder / "cert.pem", folder / "key.pem", **more)


def test_messages_are_delivered_over_tls(folder):
    async def story():
        trusting = Certificates(ca=folder / "ca.pem")
        async with (
            broker(certificates=certificates_of(folder)) as hub,
            node("a", certificates=trusting) as a,
            node("b", certificates=trusting) as b,
        ):
            a.call(hub.address)
            b.call(hub.address)
            await a.deliveries.of(Joined)
            await b.deliveries.of(Joined)
            for number in range(1000):
                a.ask(bundle(number, filler="x" * 200))
            received = await b.deliveries.bundles(1000)
            assert [one.key.sequence for one in received] == list(range(1000))

    run(story)


def test_a_broker_without_a_signed_certificate_is_refused(folder):
    async def story():
        async with (
            broker(certificates=certificates_of(folder)) as hub,
            node("a", certificates=Certificates(ca=folder / "cert.pem")) as a,
        ):
            a.call(hub.address, patient=False)
            with pytest.raises(ConnectionRefused, match=r"(?i)certificate"):
                await a.failed

    run(story)


def test_a_caller_without_a_required_certificate_is_disconnected(folder):
    async def story():
        strict = certificates_of(folder, ca=folder / "ca.pem", of_callers=True)
        async with (
            broker(certificates=strict) as hub,
            node("known", certificates=certificates_of(folder, ca=folder / "ca.pem")) as known,
            node("unknown", certificates=Certificates(ca=folder / "ca.pem")) as unknown,
        ):
            known.call(hub.address)
            await known.deliveries.of(Joined)
            unknown.call(hub.address, patient=False)
            with pytest.raises(ConnectionRefused):
                await unknown.failed
            assert list(hub.links) == ["known"]

    run(story)


def test_a_client_without_tls_cannot_connect_to_a_broker_with_tls(folder):
    async def story():
        async with broker(certificates=certificates_of(folder)) as hub, node("a") as a:
            a.call(hub.address, patient=False)
            with pytest.raises(ConnectionRefused):
                await a.failed

    run(story)


def test_unusable_certificates_are_named(folder, tmp_path):
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(UsageError, match="--tls-cert and --tls-key belong together"):
        Certificates(cert=folder / "cert.pem")
    with pytest.raises(UsageError, match=r"--tls-cert .*absent\.pem: there is no such file"):
        Certificates(tmp_path / "absent.pem", folder / "key.pem").for_listening()
    with pytest.raises(UsageError, match=r"--tls-ca .*empty\.pem: not a usable certificate"):
        Certificates(ca=tmp_path / "empty.pem").for_calling()
    with pytest.raises(UsageError, match="--tls-callers"):
        certificates_of(folder, of_callers=True)
