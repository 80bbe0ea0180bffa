import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { checkPublished } from './publishedPorts.ts'

const published = (port: number) => [{ protocol: 'TCP' as const, port, nodePort: 80 }]

test('SVC-02 --publish is refused without real nodes, and for a port that another program has', async () => {
  await checkPublished(undefined, 0)
  await assert.rejects(checkPublished(published(8080), 0), { exit: 'unmetPrerequisite', message: /simulated nodes have no network/ })
  const holder = net.createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as net.AddressInfo
  await assert.rejects(checkPublished(published(port), 1), { exit: 'conflict', message: `--publish ${port}: port ${port} of localhost is in use` })
  holder.close()
  await once(holder, 'close')
  await checkPublished(published(port), 1)
})
