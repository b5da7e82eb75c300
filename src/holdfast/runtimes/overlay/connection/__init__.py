"""Connections between hosts on TCP.

address    where a broker listens
identity   who a host is: its name, its token, its certificates, its language
limits     how much of everything one peer gets
link       Link: one connection, from the first byte to the last
handshake  names, and the proof that both ends know the token
tls        encryption
outbox     what waits for a slow consumer
calling    keeping a connection; backoff, how long to wait before the next call
"""
