import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { testCertificates } from '#testing/testCertificates'
import { createComponentWatch, portProbe } from './componentHealth.ts'

const { signal } = new AbortController()

test('API-01 a component is healthy while it runs, and unhealthy for 30 seconds after a failure, though it was started again', async () => {
  const clock = new VirtualClock()
  const watch = createComponentWatch('scheduler', clock)
  let end = (_error?: Error) => {}
  const component = watch.watch({
    name: 'kube-scheduler',
    run: () =>
      new Promise((resolve, reject) => {
        end = (error) => (error ? reject(error) : resolve())
      }),
  })
  const health = async () => watch.probe(signal)
  const stopped = { status: 'False', message: 'it is not running' }
  assert.deepEqual([watch.name, component.name, await health()], ['scheduler', 'kube-scheduler', stopped])
  const first = component.run(signal)
  assert.deepEqual(await health(), { status: 'True', message: 'ok' })
  end(new Error('no space'))
  await assert.rejects(first, /no space/)
  const second = component.run(signal)
  await clock.advance(29_999)
  assert.deepEqual(await health(), { status: 'False', message: 'no space' })
  await clock.advance(1)
  assert.deepEqual(await health(), { status: 'True', message: 'ok' })
  end()
  await second
  assert.deepEqual(await health(), stopped)
})

test('API-01 a component with a port of its own is asked for /healthz, whatever its certificate', async (t) => {
  let code = 200
  let body = 'ok'
  const server = createServer(await testCertificates(), (request, response) => response.writeHead(request.url === '/healthz' ? code : 404).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const probe = portProbe('scheduler', port)
  assert.deepEqual(await probe.probe(signal), { status: 'True', message: 'ok' })
  body = 'x'.repeat(1_000_000)
  assert.equal((await probe.probe(signal)).message.length, 10 * 1024)
  code = 500
  assert.deepEqual(await probe.probe(signal), { status: 'False', message: 'HTTP probe failed with statuscode: 500' })
  server.close()
  server.closeAllConnections()
  const { status, message } = await probe.probe(signal)
  const refused = `Get "https://127.0.0.1:${port}/healthz": dial tcp 127.0.0.1:${port}: connect: connection refused`
  assert.deepEqual([status, message], ['False', refused])
})
