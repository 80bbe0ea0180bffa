import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOwnKubelets } from './ownKubelets.ts'

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
