"""Messages as bytes.

control   messages about the connection itself
frame     Codec: the base of both encodings; a stream of bytes as frames of known length
codec     select the codec of a connection; detect the language of a caller
packed    MessagePack in frames
xml/      the thesis' XML
fault     WireFault: input that a peer must not send
"""
