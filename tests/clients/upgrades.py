"""Passes connections on to a gateway and notes each WebSocket that a client asks for: upgrades.py PORT FILE. Prints its own port."""

import asyncio
import re
import sys

port, noted = int(sys.argv[1]), sys.argv[2]


async def copy(reader, writer, note):
    while piece := await reader.read(65536):
        if note and re.search(rb"(?i)\r\nupgrade: *websocket", piece):
            with open(noted, "a") as file:
                file.write("upgrade\n")
        writer.write(piece)
        await writer.drain()
    writer.close()


async def passed(reader, writer):
    behind, before = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(copy(reader, before, True), copy(behind, writer, False), return_exceptions=True)


async def main():
    server = await asyncio.start_server(passed, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
