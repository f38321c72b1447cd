"""Between an agent's pipes and the socket on which Palaver offers it tools: bytes, both ways, and nothing else.

Run by the agent, which was told to start it as an MCP server. Standard library only and without site packages, so that it
starts at once. Where the socket is and the word that opens it stand in the environment, never in the
command line. It ends with whichever side ends first.
"""

import os
import socket
import sys
import threading

PLACE = "PALAVER_TOOLS"
SECRET = "PALAVER_TOOLS_SECRET"  # noqa: S105 - the variable's name
CHUNK_BYTES = 65_536


def main() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(os.environ[PLACE])
            server.sendall(os.environ[SECRET].encode() + b"\n")
        except (KeyError, OSError) as failure:
            sys.exit(f"Palaver's tools are gone: {failure}. They end with the program that was offered them.")
        threading.Thread(target=_outward, args=(server,), daemon=True).start()
        while chunk := os.read(0, CHUNK_BYTES):
            server.sendall(chunk)


def _outward(server: socket.socket) -> None:
    try:
        while chunk := server.recv(CHUNK_BYTES):
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
    finally:
        # At once: the other thread waits in a read that nothing here could end.
        os._exit(0)


if __name__ == "__main__":
    main()
