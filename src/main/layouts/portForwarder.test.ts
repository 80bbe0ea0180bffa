/** What the server does with the sockets that it hands over, over a channel whose answers the test decides. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { EventEmitter, once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import { test } from 'node:test'
import type { ForwardMessage } from './forwardMessages.ts'
import { createRun, type ForwarderChannel } from './portForwarder.ts'

class Channel extends EventEmitter {
  readonly connected = true
  readonly messages: ForwardMessage[] = []
  /** Called before a message is answered. @throws what the sending is to fail with */
  onSend: (message: ForwardMessage, handle: unknown) => Promise<void> | void = () => {}

  readonly send = (message: ForwardMessage, ...rest: unknown[]): boolean => {
    const answer = rest.at(-1) as (error: Error | null) => void
    this.messages.push(message)
    void (async () => this.onSend(message, rest[0]))().then(
      () => answer(null),
      (error) => answer(error),
    )
    return true
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const runOver = (channel: Channel) => createRun(channel as unknown as ForwarderChannel)

for (const protocol of ['TCP', 'UDP'] as const) {
  test(`SVC-03 a ${protocol} port of which one address cannot be handed over is closed on all, and can be opened again`, async () => {
    const channel = new Channel()
    const run = runOver(channel)
    const port = await freePort()
    channel.onSend = (message) => {
      if ('serve' in message && message.serve === 1) throw new Error('no descriptors left')
    }
    await assert.rejects(run.open({ protocol, port, targets: [] }), /no descriptors left/)
    const served = channel.messages.flatMap((message) => ('serve' in message ? [message.serve] : []))
    assert.deepEqual(
      channel.messages.flatMap((message) => ('close' in message ? [message.close] : [])),
      served,
    )
    channel.onSend = () => {}
    await run.open({ protocol, port, targets: [] })
  })
}

test('SVC-03 attempts to open a taken UDP port leave no descriptors open', { skip: process.platform === 'linux' ? false : 'reads /proc' }, async (t) => {
  const holder = createSocket('udp4').bind(0, '127.0.0.1')
  t.after(() => holder.close())
  await once(holder, 'listening')
  const { port } = holder.address()
  const descriptors = () => fs.readdirSync('/proc/self/fd').length
  const before = descriptors()
  for (let attempt = 0; attempt < 20; attempt++) {
    await assert.rejects(runOver(new Channel()).open({ protocol: 'UDP', port, targets: [] }), { code: 'EADDRINUSE', address: '127.0.0.1' })
  }
  // A socket is closed in a later turn.
  await new Promise(setImmediate)
  assert.ok(descriptors() < before + 10, `${descriptors() - before} more are open`)
})

test('SVC-03 an early connection that cannot be passed on is closed, and the others and the port are served', async () => {
  const channel = new Channel()
  const port = await freePort()
  const clients: net.Socket[] = []
  const passed: number[] = []
  let asked = 0
  channel.onSend = async (message, handle) => {
    if ('serve' in message && message.serve === 1) {
      for (let i = 0; i < 3; i++) {
        const accepted = once(handle as net.Server, 'connection')
        clients.push(net.connect(port, '127.0.0.1').on('error', () => {}))
        await accepted
      }
    }
    if (!('connectionOf' in message)) return
    if (++asked === 2) throw new Error('reset meanwhile')
    passed.push(asked)
  }
  const opened = await runOver(channel).open({ protocol: 'TCP', port, targets: [] })
  assert.deepEqual(passed, [1, 3])
  assert.deepEqual(
    channel.messages.filter((message) => 'close' in message),
    [],
  )
  opened.close()
  for (const client of clients) client.destroy()
})
