/** Clients of exec and port-forward that never read: the API server between them and the kubelet holds the kubelet back, and keeps little. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Duplex, Writable } from 'node:stream'
import test, { after, before } from 'node:test'
import WebSocket from 'ws'
import { nodes, pods } from '#client/builtIn'
import { acceptPortForward, acceptRemoteCommand } from '#streaming/remoteCommand'
import { dialRemoteCommand } from '#streaming/spdyClient'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { connectionsOver, openTunnel } from '#testing/tunnelClient'

const streams = 40
/** The kernel’s buffers of two connections for each client, up to 6 MiB each. */
const mostSent = streams * 16 * 2 ** 20
const mostHeld = 96 * 2 ** 20
const chunk = Buffer.alloc(64 * 1024)

let api: TestApiServer
let listener: TestListener
let kubelet: ReturnType<typeof createServer>
/** What the kubelet could send, and its connections that are open. */
let sent = 0
const open = new Set<Duplex>()

function fill(output: Writable): void {
  output.on('error', () => {})
  const write = () => {
    while (!output.destroyed) {
      sent += chunk.length
      if (output.write(chunk)) continue
      output.once('drain', write)
      return
    }
  }
  write()
}

before(async () => {
  kubelet = createServer(await testCertificates())
  kubelet.on('upgrade', (request, socket, head) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
    const upgrade = { request, socket, head }
    const work = request.url?.startsWith('/exec/')
      ? acceptRemoteCommand(upgrade, { stdin: false, stdout: true, stderr: false, tty: false }).then(({ stdout = new Writable() }) => fill(stdout))
      : acceptPortForward(upgrade, [], ({ data }) => fill(data))
    work.catch(() => socket.destroy())
  })
  kubelet.listen(0, '127.0.0.1')
  await once(kubelet, 'listening')
  api = await startTestApiServer()
  listener = await api.listen()
  const { port: Port } = kubelet.address() as AddressInfo
  for (const [name, declaredFeatures] of [
    ['spdy', []],
    ['tunnels', ['ExtendWebSocketsToKubelet']],
  ] as const) {
    const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
    const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port } }, declaredFeatures: [...declaredFeatures] }
    await api.client.of(nodes).create({ metadata: { name }, spec: {}, status })
    await api.client.of(pods).create({ metadata: { namespace: 'default', name }, spec: { containers: [{ name: 'c', image: 'x' }] } })
    await api.client.of(pods).createSubresource({ namespace: 'default', name }, 'binding', { target: { kind: 'Node', name } })
  }
})
after(async () => {
  await api.close()
  kubelet.close()
})

const path = (pod: string, rest: string) => `/api/v1/namespaces/default/pods/${pod}/${rest}`
const credentials = () => ({ ca: listener.ca, headers: { Authorization: `Bearer ${listener.token}` } })
const execPath = path('spdy', 'exec?command=yes&stdout=true')

/** Opens the streams, none of which is read. @returns how the client goes away */
type Client = () => Promise<() => void>

const viaTunnel = (pod: string) => async () => {
  const tunnel = await openTunnel(`${listener.url}${path(pod, 'portforward')}`, credentials())
  const forward = connectionsOver(tunnel)
  for (let i = 0; i < streams; i++) await forward.connect(80)
  return () => tunnel.terminate()
}

const clients: readonly { name: string; client: Client }[] = [
  {
    name: '40 exec over SPDY',
    client: async () => {
      const { ca, headers } = credentials()
      const options = { stdin: false, stdout: true, stderr: false, tty: false }
      const commands = await Promise.all(
        Array.from({ length: streams }, () => dialRemoteCommand(`${listener.url}${execPath}`, options, { tls: { ca }, headers })),
      )
      return () => {
        for (const command of commands) command.close()
      }
    },
  },
  {
    name: '40 exec over WebSocket',
    client: async () => {
      const sockets = Array.from(
        { length: streams },
        () => new WebSocket(`${listener.url.replace('https', 'wss')}${execPath}`, 'v5.channel.k8s.io', credentials()),
      )
      await Promise.all(sockets.map((socket) => once(socket, 'open').then(() => socket.pause())))
      return () => {
        for (const socket of sockets) socket.terminate()
      }
    },
  },
  { name: '40 connections of a tunnel to a kubelet that takes tunnels', client: viaTunnel('tunnels') },
  { name: '40 connections of a tunnel to a kubelet that knows SPDY alone', client: viaTunnel('spdy') },
]

for (const { name, client } of clients) {
  test(`ARC-05 a client that reads none of its ${name} holds the kubelet back, and frees everything when it goes away`, { timeout: 120_000 }, async () => {
    sent = 0
    const before_ = process.memoryUsage().arrayBuffers
    const leave = await client()
    for (let last = -1; last !== sent || sent === 0; await new Promise((resolve) => setTimeout(resolve, 500))) last = sent
    const held = process.memoryUsage().arrayBuffers - before_
    assert.ok(sent < mostSent, `the kubelet sent ${sent} bytes`)
    assert.ok(held < mostHeld, `client, API server and kubelet hold ${held} bytes`)
    leave()
    while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  })
}
