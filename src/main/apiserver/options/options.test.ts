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

test('ETC-19 --etcd-servers names the cluster that stores the objects, --etcd-prefix where, and files its authorities and our certificate', async () => {
  const files = { file: (path: string) => ({ read: async () => `text of ${path}` }) as never }
  const all = ['--etcd-servers=https://a:2379,https://b:2379', '--etcd-prefix=/x', '--etcd-cafile=ca', '--etcd-certfile=cert', '--etcd-keyfile=key']
  assert.deepEqual((await serverOptions(all, files)).storage.etcd, {
    endpoints: ['https://a:2379', 'https://b:2379'],
    prefix: '/x',
    tls: { ca: 'text of ca', cert: 'text of cert', key: 'text of key' },
    mediaType: 'application/vnd.kubernetes.protobuf',
  })
  const inYaml = await serverOptions(['--etcd-servers=https://a:2379', '--storage-media-type=application/yaml'], files)
  assert.equal(inYaml.storage.etcd?.mediaType, 'application/yaml')
  await assert.rejects(serverOptions(['--storage-media-type=text/plain'], files), (error) => {
    const allowed = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'
    assert.deepEqual((error as UsageError).faults, [`--storage-media-type "text/plain" invalid, allowed values: ${allowed}`])
    return true
  })
  await assert.rejects(serverOptions(['--etcd-servers=a:2379', '--etcd-keyfile=key'], files), (error) => {
    assert.deepEqual((error as UsageError).faults, [
      '--etcd-servers: "a:2379" must be http://HOST:PORT or https://HOST:PORT',
      '--etcd-certfile and --etcd-keyfile must be set together',
    ])
    return true
  })
})

test('HA-01 the reconciler of endpoints is one of three, and the number of servers is positive', async () => {
  assert.equal((await serverOptions([], noFiles)).reach.endpointReconciler, 'lease')
  await assert.rejects(serverOptions(['--endpoint-reconciler-type=gossip', '--apiserver-count=0'], noFiles), (error) => {
    assert.deepEqual((error as UsageError).faults, [
      '--endpoint-reconciler-type: "gossip" is none of master-count, lease, none',
      "--apiserver-count should be a positive number, but value '0' provided",
    ])
    return true
  })
})

test('OBS-04 --etcd-count-metric-poll-period=0 turns the counts of objects off, and a flag whose metric is hidden is named in a warning', async () => {
  const { storage } = await serverOptions(['--etcd-count-metric-poll-period=0', '--etcd-db-metric-poll-interval=0'], noFiles)
  assert.equal(storage.countsObjects, false)
  assert.deepEqual(storage.warnings, ['--etcd-db-metric-poll-interval has no effect: read apiserver_storage_size_bytes, which each scrape reads'])
  assert.equal((await serverOptions(['--etcd-count-metric-poll-period=10s'], noFiles)).storage.countsObjects, true)
  await assert.rejects(serverOptions(['--etcd-count-metric-poll-period=-1s'], noFiles), (error) => {
    assert.deepEqual((error as UsageError).faults, ['--etcd-count-metric-poll-period must not be negative'])
    return true
  })
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
      '--endpoint-reconciler-type=master-count',
      '--apiserver-count=3',
    ],
    noFiles,
  )
  assert.deepEqual(
    [storage, reach],
    [
      {
        warnings: ['--watch-cache-sizes has no effect: the watch cache holds each resource whole, once'],
        eventTtlSeconds: 600,
        leaseReuseSeconds: 60,
        compactionIntervalMs: 300_000,
        countsObjects: true,
        history: undefined,
        storeCheckTimes: { healthMs: 2000, readyMs: 2000 },
        etcd: undefined,
      },
      {
        endpointReconciler: 'master-count',
        serverCount: 3,
        kubeletAddressTypes: ['Hostname', 'InternalIP'],
        nodePorts: [31_000, 31_099],
        rejectForwardingRedirects: true,
      },
    ],
  )
  await assert.rejects(
    serverOptions(
      ['--etcd-cafile=ca', '--etcd-servers-overrides=/events#x', '--allow-privileged=false', '--kubelet-preferred-address-types=IP', '--peer-ca-file=f'],
      noFiles,
    ),
    (error) => {
      assert.deepEqual((error as UsageError).faults, [
        '--etcd-servers-overrides: one cluster stores all resources: leave it out',
        '--etcd-cafile must be set with --etcd-servers',
        '--kubelet-preferred-address-types: "IP" is no type of address: use Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP',
        '--allow-privileged=false is not there: let the Pod Security level of a namespace be baseline or restricted',
        '--peer-ca-file is not there: leave it out',
      ])
      return true
    },
  )
  for (const range of ['0-10', '10-5', '70000', 'x', '65000+1000']) {
    await assert.rejects(serverOptions([`--service-node-port-range=${range}`], noFiles), /expected a range of ports/)
  }
})

test('X5 --history and --history-size set how much history is kept, each with a default of the other', async () => {
  const historyOf = async (...args: string[]) => (await serverOptions(args, noFiles)).storage.history
  assert.deepEqual(await historyOf('--history=24h'), { keepMs: 86_400_000, maxBytes: 400 * 2 ** 20 })
  assert.deepEqual(await historyOf('--history-size=10Mi'), { keepMs: 720 * 3_600_000, maxBytes: 10 * 2 ** 20 })
  await assert.rejects(historyOf('--history=5s', '--history-size=4k'), (error) => {
    assert.deepEqual((error as UsageError).faults, ['--history must be 0, or from 1m to 720h', '--history-size "4k" must be at least 1Mi, such as 400Mi'])
    return true
  })
})
