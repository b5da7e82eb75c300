"""Certificates made for a test."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_certificates(folder):
    """An authority (``ca.pem``) in a folder, and a certificate for this machine that it signed."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make certificates")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj")
    openssl("req", "-x509", *key, "/CN=ca", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    openssl("req", *key, "/CN=hub", "-keyout", folder / "key.pem", "-out", folder / "csr.pem")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    signing = ("-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial")
    extras = ("-extfile", folder / "san", "-out", folder / "cert.pem")
    openssl("x509", "-req", "-in", folder / "csr.pem", *signing, *extras)
    return folder
