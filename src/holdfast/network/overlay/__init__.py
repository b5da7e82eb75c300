"""The overlay: hosts that run protocol machines on sockets, or in one process.

    tcp          TcpHost: a machine that listens and calls
    udp          UdpHost: a machine that sends datagrams, which may get lost
    clock        the clock of both hosts
    memory/      networks in one process, joined by queues
    broker       a broker of the content-based family (cbps) on TCP
    client       a publisher or subscriber on TCP
    conditions   definitions that are sent with subscriptions
    regions      the regions of a network, which a broker stores
    requests     subscriptions as requests, including those that read a file
    connection/  below TCP hosts: calls, identities, queues
    wire/        messages as bytes: MessagePack in frames, or the thesis' XML
    points       machines that send to points, where every node reaches every other
    relays       machines that send to points, where a node reaches only its neighbours
    shipped/     processes for code that subscribers ship
    commands/    the work of ``holdfast broker``, ``publish`` and ``subscribe``: lines and processes

The machines are in ``protocols``, and ``model.host`` runs them. The hosts in this package add sending,
delivering and closing.
"""
