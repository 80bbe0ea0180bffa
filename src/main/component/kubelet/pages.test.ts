import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { createRealClock } from '../../realClock.ts'
import { kubeletPages } from './pages.ts'

test('OBS-16 KUB-17 the port of a kubelet serves a CPU profile of its process, and leaves no listener on the connection', async () => {
  const pages = kubeletPages({ clock: createRealClock(), flags: {} })
  const socket = new EventEmitter()
  const ask = (url: string) => pages({ url, headers: {}, socket } as unknown as IncomingMessage)
  const page = await ask('/debug/pprof/profile?seconds=1')
  assert.equal(page?.code, 200)
  assert.ok(gunzipSync(page?.body as Uint8Array).length > 0)
  assert.equal((await ask('/debug/pprof/other')) === undefined, true)
  assert.equal(socket.listenerCount('close'), 0)
})

test('OBS-16 KUB-17 a profile ends when its connection closes', async () => {
  const pages = kubeletPages({ clock: createRealClock(), flags: {} })
  const socket = new EventEmitter()
  let isOver = false
  const asked = pages({ url: '/debug/pprof/profile?seconds=3600', headers: {}, socket } as unknown as IncomingMessage).finally(() => {
    isOver = true
  })
  const refused = assert.rejects(asked)
  while (!isOver) {
    socket.emit('close')
    await turn()
  }
  await refused
})
