import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createOwnKubelets, type OwnKubelets } from './ownKubelets.ts'

const kubelets = createOwnKubelets()
kubelets.add('sim-1', { address: '198.18.0.1', port: 10_250, listensOn: '127.0.0.1' })

const cases = [
  { name: 'the published address and port', node: 'sim-1', address: '198.18.0.1', port: 10_250, want: '127.0.0.1' },
  { name: 'another port', node: 'sim-1', address: '198.18.0.1', port: 6443, want: undefined },
  { name: 'the loopback address', node: 'sim-1', address: '127.0.0.1', port: 10_250, want: undefined },
  { name: 'another node', node: 'sim-2', address: '198.18.0.1', port: 10_250, want: undefined },
]
for (const { name, node, address, port, want } of cases) {
  test(`API-29 an own kubelet is found by what its node publishes alone: ${name}`, () => {
    assert.equal(kubelets.listenAddress(node, address, port), want)
  })
}

test('API-29 a server finds the kubelets that another server runs, and only where those listen', { timeout: 10_000 }, async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-kubelets-'))
  const clock = new VirtualClock()
  const [host, other] = [0, 1].map(() => createOwnKubelets({ file: path.join(dir, 'kubelets.json'), clock })) as [OwnKubelets, OwnKubelets]
  const stop = new AbortController()
  const following = other.components.map(({ run }) => run(stop.signal))
  host.add('sim-1', { address: '198.18.0.1', port: 10_250, listensOn: '127.0.0.1' })
  await host.publish()
  while (other.listenAddress('sim-1', '198.18.0.1', 10_250) === undefined) {
    await new Promise(setImmediate)
    await clock.advance(1000)
  }
  assert.equal(other.listenAddress('sim-1', '198.18.0.1', 10_250), '127.0.0.1')
  assert.equal(other.listenAddress('sim-1', '198.18.0.1', 6443), undefined)
  host.clear()
  assert.equal(host.listenAddress('sim-1', '198.18.0.1', 10_250), undefined)
  stop.abort()
  await Promise.all(following)
  await fs.rm(dir, { recursive: true })
})

test('ARC-13 a node with a kubelet of this process is measured by its meter, and before it has one not at all', async () => {
  const own = createOwnKubelets()
  const sample = { node: { startedAtMs: 0, atMs: 1, cpuNs: 2, memoryBytes: 3 }, pods: new Map() }
  own.measureElsewhere(async () => assert.fail('no node runs elsewhere'))
  own.add('sim-1', { address: '198.18.0.1', port: 10_250, listensOn: '127.0.0.1' })
  assert.throws(() => own.measure('sim-1'), /the kubelet of node sim-1 has not started yet/)
  own.addMeter('sim-1', async () => sample)
  assert.equal(await own.measure('sim-1'), sample)
  assert.equal(own.measure('other'), undefined)
})
