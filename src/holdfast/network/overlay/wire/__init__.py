"""Messages as bytes.

control   messages about the connection itself codec     Codec: encodes and decodes messages; detects the
language of a caller packed    MessagePack in frames frame     a stream of bytes as frames of known length
xml/      the thesis' XML fault     WireFault: input that a peer must not send
"""
