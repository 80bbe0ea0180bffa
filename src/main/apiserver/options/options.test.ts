import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UsageError } from './flags.ts'
import { optionGroups, serverOptions } from './index.ts'

const noFiles = {
  file: (path: string): never => {
    throw new Error(`${path} was not to be read`)
  },
}

test('no flag belongs to two groups, and each explains itself', () => {
  const names = Object.values(optionGroups).flatMap((group) => Object.keys(group.flags))
  assert.equal(new Set(names).size, names.length)
  for (const group of Object.values(optionGroups)) for (const [name, flag] of Object.entries(group.flags)) assert.ok(flag.usage.length > 10, name)
})

test('without flags everything has its default', async () => {
  const { generic, flags } = await serverOptions([], noFiles)
  assert.deepEqual(generic.maxInFlight, { readOnly: 400, mutating: 200 })
  assert.equal(flags['request-timeout'], '1m0s')
})

test('one error names the faults of all groups of flags', async () => {
  await assert.rejects(
    serverOptions(['--goaway-chance=0.5', '--request-timeout=-1s', '--strict-transport-security-directives=max-age=1,other'], noFiles),
    (error) => {
      assert.deepEqual((error as UsageError).faults, [
        '--goaway-chance can not be less than 0 or greater than 0.02',
        '--request-timeout can not be negative value',
        '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information',
      ])
      return true
    },
  )
})

test('what an etcd, clouds and proxies are asked for is taken as kubeadm and envtest write it, and refused where it asks for what is not there', async () => {
  const { storage, reach } = await serverOptions(
    [
      '--allow-privileged=true',
      '--watch-cache-sizes=pods#5000,nodes#1000',
      '--storage-backend=etcd3',
      '--event-ttl=10m',
      '--kubelet-preferred-address-types=Hostname,InternalIP',
      '--service-node-port-range=31000+99',
      '--emulated-version=kube=1.36',
    ],
    noFiles,
  )
  assert.deepEqual(
    [storage, reach],
    [
      { eventTtlSeconds: 600, compactionIntervalMs: 300_000 },
      { kubeletAddressTypes: ['Hostname', 'InternalIP'], nodePorts: [31_000, 31_099], rejectForwardingRedirects: true },
    ],
  )
  await assert.rejects(
    serverOptions(
      ['--etcd-servers=http://127.0.0.1:2379', '--allow-privileged=false', '--kubelet-preferred-address-types=IP', '--tracing-config-file=f'],
      noFiles,
    ),
    (error) => {
      assert.deepEqual((error as UsageError).faults, [
        '--etcd-servers: this server keeps its objects itself, below --data-dir: leave it out',
        '--kubelet-preferred-address-types: "IP" is no type of address: use Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP',
        '--allow-privileged=false is not there: let the Pod Security level of a namespace be baseline or restricted',
        '--tracing-config-file is not there: leave it out',
      ])
      return true
    },
  )
  for (const range of ['0-10', '10-5', '70000', 'x', '65000+1000']) {
    await assert.rejects(serverOptions([`--service-node-port-range=${range}`], noFiles), /expected a range of ports/)
  }
})
