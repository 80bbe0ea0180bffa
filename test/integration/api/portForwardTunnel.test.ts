/** Port-forward over SPDY that is tunnelled through a WebSocket, against a server of this process. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Duplex, Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { acceptPortForward } from '#streaming/remoteCommand'
import type { PortForwardConnection } from '#streaming/streams'
import { connectionsOver, openTunnel } from '#testing/tunnelClient'

/** @returns the URL, and one promise for each client, which resolves when its port-forward is over */
async function serve(onConnection: (connection: PortForwardConnection) => void) {
  const server = http.createServer()
  const ended: Promise<void>[] = []
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => {})
    const served = acceptPortForward({ request, socket, head }, [], onConnection)
    served.catch(() => {})
    ended.push(served)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ended, close }
}

const echo = ({ port, data, fail }: PortForwardConnection) => {
  if (port === 1) return fail('no process listens on port 1')
  data.pipe(data)
}

test('ARC-05 a tunnelled port-forward carries connections, half-closed ends and a failure', async () => {
  const { url, ended, close } = await serve(echo)
  const forward = connectionsOver(await openTunnel(url))
  for (const port of [80, 443]) {
    const { data, error } = await forward.connect(port)
    data.end('ping')
    assert.equal(await text(data), 'ping')
    assert.equal(await error, '')
  }
  const refused = await forward.connect(1)
  assert.equal(await refused.error, 'no process listens on port 1')
  forward.close()
  await ended[0]
  close()
})

test('ARC-05 a tunnelled port-forward carries 60 connections of 1 MiB at once', async () => {
  const { url, close } = await serve(echo)
  const forward = connectionsOver(await openTunnel(url))
  const payload = randomBytes(1024 * 1024)
  const exchange = async () => {
    const { data } = await forward.connect(80)
    Readable.from([payload]).pipe(data)
    return (await buffer(data)).equals(payload)
  }
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 60 }, exchange))), new Set([true]))
  forward.close()
  close()
})

test('ARC-05 a tunnel is chosen among other protocols, one of which carries a token', async () => {
  const { url, close } = await serve(echo)
  const token = `base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`
  const forward = connectionsOver(await openTunnel(url, {}, `${token}, SPDY/3.1+other.k8s.io, SPDY/3.1+portforward.k8s.io`))
  const { data } = await forward.connect(80)
  data.end('chosen')
  assert.equal(await text(data), 'chosen')
  forward.close()
  close()
})

test('ARC-05 a tunnel of an unknown protocol is refused', async () => {
  const { url, close } = await serve(echo)
  await assert.rejects(openTunnel(url, {}, 'SPDY/3.1+other.k8s.io'), /^Error: 403: requested protocol\(s\) are not supported: SPDY\/3\.1\+other\.k8s\.io/)
  close()
})

const faults: readonly { name: string; send: (tunnel: Awaited<ReturnType<typeof openTunnel>>) => void }[] = [
  { name: 'sends text', send: (tunnel) => tunnel.send('text') },
  { name: 'sends bytes that are no SPDY frame', send: (tunnel) => tunnel.send(Buffer.alloc(4096, 0xff)) },
  {
    name: 'sends a header block that is not compressed',
    send: (tunnel) => tunnel.send(Buffer.from('8003000100000014000000010000000000000000ffffffffffffffff', 'hex')),
  },
  { name: 'closes the WebSocket', send: (tunnel) => tunnel.close(1000) },
  { name: 'is cut off', send: (tunnel) => tunnel.terminate() },
]
for (const { name, send } of faults) {
  test(`ARC-05 a client of a tunnel that ${name} ends its port-forward and its connections, and no other client’s`, { timeout: 20_000 }, async () => {
    const closed: Promise<unknown>[] = []
    const { url, ended, close } = await serve((connection) => {
      closed.push(once(connection.data, 'close'))
      echo(connection)
    })
    const other = connectionsOver(await openTunnel(url))
    const faulty = await openTunnel(url)
    const { data } = await connectionsOver(faulty).connect(80)
    data.write('ping')
    await once(data, 'data')
    send(faulty)
    await ended[1]
    await Promise.all(closed)
    const kept = await other.connect(80)
    kept.data.end('kept')
    assert.equal(await text(kept.data), 'kept')
    other.close()
    close()
  })
}

const chunk = Buffer.alloc(64 * 1024)
/** Both ends are in this process: 256 KiB of the first stream, what the WebSocket and the kernel hold, and a chunk or two for each stream. */
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const mostUnread = 40 * 512 * 1024

/** Writes as long as the stream takes something. @returns how much that was, so far */
function fill(data: Duplex, limit = Number.POSITIVE_INFINITY): () => number {
  let sent = 0
  const write = () => {
    while (!data.destroyed && sent < limit) {
      sent += chunk.length
      if (!data.write(chunk)) {
        data.once('drain', write)
        return
      }
    }
    data.end()
  }
  data.on('error', () => {})
  write()
  return () => sent
}

/** V8 frees the memory of buffers on a thread of its own, some time after a collection. @returns bytes, read until they are below the limit or for 5 s */
async function keptBuffers(limit: number): Promise<number> {
  let kept = Number.POSITIVE_INFINITY
  for (let i = 0; i < 50 && kept >= limit; i++) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, 100))
    kept = process.memoryUsage().arrayBuffers
  }
  return kept
}

/** Waits until nothing moves any more. */
async function still(total: () => number): Promise<number> {
  for (let before = -1; before !== total(); await new Promise((resolve) => setTimeout(resolve, 300))) before = total()
  return total()
}

test('ARC-05 40 connections of a tunnel that the client does not read hold back what is sent to them', { timeout: 60_000 }, async () => {
  const sent: (() => number)[] = []
  const { url, ended, close } = await serve(({ data }) => void sent.push(fill(data)))
  const tunnel = await openTunnel(url)
  const forward = connectionsOver(tunnel)
  for (let i = 0; i < 40; i++) await forward.connect(80)
  const total = await still(() => sent.reduce((sum, of) => sum + of(), 0))
  const kept = await keptBuffers(2 * mostUnread)
  // A failed check would otherwise leave the connections open, and the process with them.
  tunnel.terminate()
  await ended[0]
  close()
  assert.equal(sent.length, 40)
  assert.ok(total < mostUnread, `${total} bytes were sent to streams that are not read`)
  assert.ok(kept < 2 * mostUnread, `${kept} bytes of buffers`)
})

test('ARC-05 40 connections of a tunnel that the server does not read hold back the client, and lose nothing when it reads', { timeout: 60_000 }, async () => {
  const unread: Duplex[] = []
  const { url, close } = await serve(({ data }) => void unread.push(data))
  const forward = connectionsOver(await openTunnel(url))
  const connections: Duplex[] = []
  for (let i = 0; i < 40; i++) connections.push((await forward.connect(80)).data)
  const each = 32 * chunk.length
  const sent = connections.map((data) => fill(data, each))
  const total = await still(() => sent.reduce((sum, of) => sum + of(), 0))
  assert.ok(total < mostUnread, `${total} bytes were sent to streams that are not read`)
  const lengths = await Promise.all(unread.map(async (data) => (await buffer(data)).length))
  assert.deepEqual([lengths.length, new Set(lengths)], [40, new Set([each])])
  forward.close()
  close()
})
