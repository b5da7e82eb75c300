"""What goes over a connection.

control   what two ends say about the connection itself
codec     Codec: bytes to what they say, and back; which of the two languages a caller speaks
packed    MessagePack in frames
frame     a stream of bytes as messages of known length
xml/      the thesis' XML
fault     WireFault: what a peer must not send
"""
