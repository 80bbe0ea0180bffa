/** Commands that forward the ports of a pod or a Service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Forward, forwardsOf } from './forwards.ts'

const metadata = { namespace: 'shop', name: 'web' }
const texts = (forwards: readonly Forward[]) => forwards.map(({ port, protocol, name, command }) => `${port}/${protocol} ${name}: ${command ?? 'none'}`)

test('ARC-16 each TCP port of a pod has a command that forwards it to a port which needs no privilege', () => {
  const containers = [
    { name: 'main', ports: [{ containerPort: 80, name: 'http' }, { containerPort: 9090 }] },
    { name: 'dns', ports: [{ containerPort: 53, protocol: 'UDP' }] },
    { name: 'none' },
  ]
  assert.deepEqual(texts(forwardsOf('pods', { metadata, spec: { containers } })), [
    '80/TCP http: kubectl port-forward -n shop pods/web 8080:80',
    '9090/TCP main: kubectl port-forward -n shop pods/web 9090:9090',
    '53/UDP dns: none',
  ])
})

test('ARC-16 a Service has commands for its TCP ports, and one that only names another host has none', () => {
  const ports = [{ port: 443, protocol: 'TCP', name: 'https' }]
  assert.deepEqual(texts(forwardsOf('services', { metadata, spec: { ports } })), ['443/TCP https: kubectl port-forward -n shop services/web 8443:443'])
  assert.deepEqual(texts(forwardsOf('services', { metadata, spec: { ports, type: 'ExternalName' } })), ['443/TCP https: none'])
  assert.deepEqual(forwardsOf('deployments', { metadata, spec: { ports } }), [])
})
