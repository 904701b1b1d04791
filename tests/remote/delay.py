#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A proxy on loopback that simulates a distant server: it delays bytes by half a round trip, in both directions.

    delay.py PORT MILLISECONDS      prints its own port; ends when its standard input does
"""
import asyncio
import os
import sys


async def carry(reader, writer, delay):
    """Delays each piece by itself, so the rate does not change."""
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue(4096)

    async def put():
        while True:
            due, piece = await queue.get()
            wait = due - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        writer.close()

    task = asyncio.create_task(put())
    try:
        while True:
            piece = await reader.read(1 << 18)
            await queue.put((loop.time() + delay, piece))
            if not piece:
                break
        await task
    except OSError:
        task.cancel()
        writer.close()


async def main():
    port, delay = int(sys.argv[1]), float(sys.argv[2]) / 2000

    async def serve(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(2 * delay)  # the connection itself takes a round trip
        await asyncio.gather(carry(reader, back, delay), carry(there, writer, delay), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # open connections are closed


asyncio.run(main())
