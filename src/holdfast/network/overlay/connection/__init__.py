"""TCP connections between hosts.

address     the host and port on which a broker listens
identity    the name, token, certificates and language of a host
limits      resource limits for one peer
link        Link: one connection, from the first byte to the last
handshake   names, and the proof that both ends know the token
tls         encryption
outbox      the queue for a slow consumer
calling     keeps a connection to an address
backoff     the time to wait before the next call
"""
