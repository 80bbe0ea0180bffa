/** The holder of a port: lines of the kernel's tables, and this process itself. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { mock, type TestContext, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createPortHolders, localSockets, lookKeptMs } from './portHolder.ts'

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
const line = (local: string, state: string, inode: string) =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0`

const cases: readonly { name: string; line: string; isTcp?: boolean; found: boolean }[] = [
  { name: '127.0.0.1', line: line('0100007F:0050', '0A', '71'), found: true },
  { name: 'all addresses', line: line('00000000:0050', '0A', '71'), found: true },
  { name: '::1', line: line('00000000000000000000000001000000:0050', '0A', '71'), found: true },
  { name: '127.0.0.1 as an IPv6 address', line: line('0000000000000000FFFF00000100007F:0050', '0A', '71'), found: true },
  { name: 'an address of the network', line: line('0100A8C0:0050', '0A', '71'), found: false },
  { name: 'a connection', line: line('0100007F:0050', '01', '71'), found: false },
  { name: 'a UDP socket', line: line('0100007F:0050', '07', '71'), isTcp: false, found: true },
]
for (const { name, line, isTcp = true, found } of cases) {
  test(`SVC-03 the socket that has port 80: ${name} ${found ? 'counts' : 'does not count'}`, () =>
    assert.deepEqual([...localSockets(`${head}\n${line}\n`, isTcp)], [found ? { port: 80, inode: '71' } : undefined]))
}

test('SVC-03 a table that ends within a line has the lines before it, and an empty one has none', () => {
  const text = line('0100007F:0050', '0A', '71')
  assert.deepEqual([...localSockets(`${head}\n${text}\n${text.slice(0, 30)}`, true)], [{ port: 80, inode: '71' }])
  for (const table of ['', head, `${head}\n`]) assert.deepEqual([...localSockets(table, true)], [])
})

const options = { skip: process.platform !== 'linux' }

/** A TCP server on a free port of 127.0.0.1, which is closed after the test. */
async function listen(t: TestContext): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  t.after(() => void server.close())
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

/** A UDP socket on a free port of 127.0.0.1, which is closed after the test. */
async function bind(t: TestContext): Promise<number> {
  const socket = createSocket('udp4')
  t.after(() => void socket.close())
  socket.bind({ port: 0, address: '127.0.0.1' })
  await once(socket, 'listening')
  return socket.address().port
}

test('SVC-03 the holder of a port is found by its descriptor, with its program and command line', options, async (t) => {
  const ports = { TCP: await listen(t), UDP: await bind(t) }
  const holderOf = createPortHolders(new VirtualClock())
  for (const protocol of ['TCP', 'UDP'] as const) {
    const holder = await holderOf(protocol, ports[protocol])
    assert.equal(holder?.pid, process.pid, protocol)
    assert.match(holder?.program ?? '', /^\S+$/)
    assert.equal(holder?.words[0], process.argv0)
  }
})

test('SVC-03 one look at the processes serves every question of five seconds', options, async (t) => {
  const clock = new VirtualClock()
  const holderOf = createPortHolders(clock)
  const first = await listen(t)
  const looks = mock.method(fs, 'readlinkSync')
  syncBuiltinESMExports()
  try {
    assert.equal((await holderOf('TCP', first))?.pid, process.pid)
    const one = looks.mock.callCount()
    assert.ok(one > 0)
    const second = await listen(t)
    for (let i = 0; i < 10; i++) assert.equal(await holderOf('TCP', second), undefined)
    assert.equal(looks.mock.callCount(), one)
    await clock.advance(lookKeptMs)
    assert.equal((await holderOf('TCP', second))?.pid, process.pid)
  } finally {
    looks.mock.restore()
    syncBuiltinESMExports()
  }
})
