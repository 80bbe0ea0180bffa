/** A log that a client requests and does not read, from a simulated container through the kubelet and the API server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { test } from 'node:test'
import { pods } from '#client/builtIn'
import { startCluster } from '#testing/cluster'

const mebibyte = 2 ** 20
const line = 'x'.repeat(mebibyte / 4)
const lines = 1200
/** Buffers of the sockets and streams on the way; the log has 300 MiB. */
const maxHeldBytes = 40 * mebibyte
const namespace = 'default'

const held = () => process.memoryUsage().arrayBuffers

/** Resolves when memory has not grown for half a second. */
async function settled(): Promise<number> {
  let most = held()
  for (let still = 0; still < 10; still++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    if (held() <= most) continue
    most = held()
    still = 0
  }
  return most
}

test('KUB-17 a log that a client does not read is not held in memory', { timeout: 60_000 }, async () => {
  const logs = Array.from({ length: lines }, () => line)
  const cluster = await startCluster({ clock: 'real', kubeletPorts: true, profile: { behave: () => ({ logs }) } })
  try {
    const { url, ca, token } = await cluster.listen()
    await cluster.client.of(pods).create({ metadata: { namespace, name: 'loud' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
    await cluster.until(async () => (await cluster.client.of(pods).get({ namespace, name: 'loud' })).status.phase === 'Running')
    const before = held()
    const asked = https.get(`${url}/api/v1/namespaces/${namespace}/pods/loud/log?follow=true`, { ca, headers: { authorization: `Bearer ${token}` } })
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.pause()
    const grown = (await settled()) - before
    assert.equal(answer.statusCode, 200)
    assert.ok(grown < maxHeldBytes, `${Math.round(grown / mebibyte)} MiB`)
    let received = 0
    for await (const chunk of answer) {
      received += (chunk as Buffer).length
      if (received === lines * (line.length + 1)) break
    }
    answer.destroy()
  } finally {
    await cluster.close()
  }
})
