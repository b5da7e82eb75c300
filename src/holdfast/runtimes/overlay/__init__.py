"""The overlay: protocol machines that talk, each at its own end of a wire or all in one process.

    tcp          TcpHost: a machine that listens and calls
    udp          UdpHost: a machine that sends datagrams, which may get lost
    clock        the time of both
    memory/      whole networks in one process, joined by queues
    broker       a broker of the content-based family (cbps) on TCP
    client       a publisher or subscriber on TCP
    conditions   definitions that travel with subscriptions
    regions      those of a network, which a broker knows
    exactly      subscriptions as requests, those that look something up in a file among them
    connection/  below TCP hosts: whom to call, who is there, what waits to be sent
    wire/        what goes over a connection, in bytes: MessagePack in frames, or the thesis' XML
    commands/    behind ``holdfast broker``, ``publish`` and ``subscribe``: lines and processes

The machines are in ``protocols``; ``model.host`` runs them.  What the hosts here add is how to send, to hand
over and to part.
"""
