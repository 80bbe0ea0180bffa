/** The address of a further control plane: which are refused, and when the search for one ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { CommandError } from '#cli/exitCodes'
import { localAddress } from './localAddress.ts'

const server = createServer((socket) => socket.destroy())
const never = new AbortController().signal

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => server.close())

const place = () => ({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })

test('HA-01 a machine that reaches the cluster from a loopback address is refused, with the flag that names another one', () =>
  assert.rejects(
    localAddress(place(), new VirtualClock(), never),
    ({ exit, message, hint }: CommandError) =>
      exit === 'unmetPrerequisite' && /from 127\.0\.0\.1/.test(message) && /--apiserver-advertise-address IP/.test(hint ?? ''),
  ))

test('HA-01 a connection to the cluster that is not made in five seconds is given up, and a signal ends it', async () => {
  const clock = new VirtualClock()
  const late = assert.rejects(localAddress(place(), clock, never), ({ exit, message }: CommandError) => exit === 'timeout' && /within 5 s/.test(message))
  // Before the event loop can see the connection.
  void clock.advance(5000)
  await late
  await assert.rejects(localAddress(place(), clock, AbortSignal.abort(new Error('stopped'))), /stopped/)
})
