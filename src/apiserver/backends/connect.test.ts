import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { dial } from './connect.ts'

test('API-29 CVE-2020-8562 the addresses that are connected to are checked, not those that an earlier look-up found', async () => {
  let reached = 0
  const server = createServer((socket) => {
    reached++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const checked: string[] = []
  const mayDial = (address: string) => {
    checked.push(address)
    return false
  }
  const { signal } = new AbortController()
  try {
    // An earlier check would have had another answer for this name: what counts is the look-up of the connection itself.
    for (const tls of [undefined, { insecure: true }])
      await assert.rejects(dial({ host: 'localhost', port, tls, path: '/', mayDial }, signal), /address not allowed/)
    assert.ok(checked.includes('127.0.0.1') || checked.includes('::1'), checked.join())
    assert.equal(reached, 0)
    ;(await dial({ host: 'localhost', port, tls: undefined, path: '/', mayDial: () => true }, signal)).destroy()
  } finally {
    server.close()
  }
})
