import assert from 'node:assert/strict'
import { lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import type { ConfigFile } from '#apiserver/core/configFile'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { Client } from '#client/client'
import { signRequest } from '#controllers/certificates/x509'
import { UsageError } from '../../apiserver/options/flags.ts'
import { readOptions } from '../../apiserver/options/readOptions.ts'
import { kubeletGroups } from '../../layouts/kubelet.ts'
import type { ProcessTools } from '../../layouts/processTools.ts'
import { createAuthority, issueCertificate } from '../../pki/certificates.ts'
import { wantedClientCertificate } from './apiAccess.ts'
import { createCertificateManager } from './certificateManager.ts'
import { createCertificateStore, rotationDueMs, validityOf } from './certificateStore.ts'
import { effectiveConfiguration } from './kubeletFlags.ts'

const filesOf = (files: Readonly<Record<string, string>>) => ({
  file: (name: string) => ({ path: name, read: async () => files[name] ?? '', follow: () => {} }) as ConfigFile,
})
const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'

test('KUB-24 flags win over the file, and the deprecated ones are named', async () => {
  const args = [
    '--config=f',
    '--max-pods=9',
    '--eviction-hard=memory.available<1Gi',
    '--kube-reserved=cpu=100m',
    '--feature-gates=QOSReserved=true',
    '--serialize-image-pulls=false',
  ]
  const nested = ['--anonymous-auth', '--authorization-mode=AlwaysAllow', '--register-with-taints=a=b:NoSchedule,c:NoExecute', '--kube-api-qps=7', '--v=4']
  const { kubelet, configuration } = await readOptions(kubeletGroups, [...args, ...nested], filesOf({ f: `${head}maxPods: 5\nkubeAPIBurst: 3\n` }))
  const { document } = effectiveConfiguration(kubelet.file, configuration.document)
  assert.deepEqual(
    [
      document.maxPods,
      document.kubeAPIBurst,
      document.kubeAPIQPS,
      document.evictionHard,
      document.kubeReserved,
      document.serializeImagePulls,
      document.featureGates,
    ],
    [9, 3, 7, { 'memory.available': '1Gi' }, { cpu: '100m' }, false, { QOSReserved: true }],
  )
  assert.deepEqual(document.registerWithTaints, [
    { key: 'a', value: 'b', effect: 'NoSchedule' },
    { key: 'c', effect: 'NoExecute' },
  ])
  assert.deepEqual(document.authentication, { x509: {}, webhook: { enabled: true, cacheTTL: '2m0s' }, anonymous: { enabled: true } })
  assert.equal((document.authorization as { mode: string }).mode, 'AlwaysAllow')
  assert.equal(configuration.deprecations.length, 9)
})

test('KUB-24 flags that are texts of their own kind: headers, reserved memory, node addresses', async () => {
  const headers = ['--manifest-url-header=a:hello,b:again,c:world', '--manifest-url-header=b:beautiful']
  const memory = ['--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Gi', '--reserved-memory=1:memory=2Gi;2:memory=3Gi']
  const { kubelet, configuration } = await readOptions(kubeletGroups, [...headers, ...memory, '--node-ip=192.0.2.1, 2001:db8::1,x'], filesOf({}))
  assert.deepEqual(configuration.document.staticPodURLHeader, { a: ['hello'], b: ['again', 'beautiful'], c: ['world'] })
  assert.deepEqual(configuration.document.reservedMemory, [
    { numaNode: 0, limits: { memory: '1Gi', 'hugepages-2Mi': '2Gi' } },
    { numaNode: 1, limits: { memory: '2Gi' } },
    { numaNode: 2, limits: { memory: '3Gi' } },
  ])
  assert.deepEqual(kubelet.nodeIP, { addresses: ['192.0.2.1', '2001:db8::1'], preferred: 'IPv4', invalid: ['x'] })
  assert.deepEqual(kubelet.warnings, ['Could not parse node IP "x", ignoring it'])
})

test('KUB-24 --node-ip=:: selects the machine’s own address, IPv6 first; the log names flags without effect, unless they set the default', async () => {
  const args = ['--node-ip=::', '--lock-file=x', '--storage-driver-secure', '--register-schedulable=true']
  const { kubelet } = await readOptions(kubeletGroups, args, filesOf({}))
  assert.deepEqual(kubelet.nodeIP, { addresses: [], preferred: 'IPv6', invalid: [] })
  assert.deepEqual(
    kubelet.warnings.map((text) => text.split(' ')[0]),
    ['--lock-file', '--storage-driver-secure'],
  )
})

test('KUB-24 --tls-curve-preferences is a list of numbers', async () => {
  const { configuration } = await readOptions(kubeletGroups, ['--tls-curve-preferences=29,23', '--tls-curve-preferences=24'], filesOf({}))
  assert.deepEqual(configuration.document.tlsCurvePreferences, [29, 23, 24])
  await assert.rejects(readOptions(kubeletGroups, ['--tls-curve-preferences=X25519'], filesOf({})), UsageError)
})

const refused: readonly (readonly [args: readonly string[], fault: RegExp])[] = [
  [['--max-pods=many'], /invalid argument "many" for "--max-pods" flag/],
  [['--cloud-provider=gce'], /unknown cloud provider "gce"/],
  [['--node-labels=kubernetes.io/role=x'], /unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: \[kubernetes.io\/role\]/],
  [['--register-with-taints=a'], /"a" is no taint/],
  [['--sync-frequency=soon'], /expected a duration/],
  [['--config-dir=/nonexistent'], /cannot be read/],
  [['--manifest-url-header=a'], /malformed pair, expect string:string/],
  [['--reserved-memory=memory=1Gi'], /expected numaNodeID:type=quantity\[,type=quantity...\], got memory=1Gi/],
  [['--reserved-memory=a:memory=1Gi'], /NUMA node ID/],
  [['--reserved-memory=0:cpu=1'], /unknown type: "cpu"/],
  [['--reserved-memory=0:memory=much'], /got much/],
  [['--node-ip=192.0.2.1,192.0.2.2'], /bad --node-ip "192.0.2.1,192.0.2.2": must contain either a single IP or a dual-stack pair of IPs/],
  [['--node-ip=192.0.2.1,::'], /dual-stack node IP cannot include '0.0.0.0' or '::'/],
  [['--logging-format=xml'], /"xml" must be "text" or "json"/],
  [['--config=f'], /unknown field "nonsense"/],
]
for (const [args, fault] of refused) {
  test(`KUB-24 refused: ${args.join(' ')}`, async () => {
    const read = readOptions(kubeletGroups, args, filesOf({ f: `${head}nonsense: 1\n` }))
    await assert.rejects(read, (error: unknown) => error instanceof UsageError && error.faults.some((one) => fault.test(one)))
  })
}

test('KUB-24 one error names the faults of flags and file together', () => {
  assert.throws(
    () => effectiveConfiguration({ maxPods: -1 }, { kubeAPIQPS: -1 }),
    (error: unknown) => error instanceof UsageError && error.faults.length === 2,
  )
})

test('KUB-24 drop-ins are read in the order of their names, and only *.conf', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'skiff-dropins-'))
  try {
    await mkdir(path.join(directory, 'd'))
    for (const name of ['20.conf', '10.conf', 'x.yaml']) await writeFile(path.join(directory, 'd', name), '')
    const at = (name: string) => path.join(directory, 'd', name)
    const files = filesOf({ [at('10.conf')]: `${head}maxPods: 1\nport: 1\n`, [at('20.conf')]: `${head}maxPods: 2\n` })
    const { kubelet } = await readOptions(kubeletGroups, [`--config-dir=${path.join(directory, 'd')}`], files)
    assert.deepEqual(kubelet.file, { maxPods: 2, port: 1 })
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('KUB-23 certificates are renewed after 70 to 90 % of their time', () => {
  const validity = { fromMs: 1000, untilMs: 2000 }
  assert.deepEqual([rotationDueMs(validity, 0), rotationDueMs(validity, 1)], [1700, 1900])
})

test('KUB-23 a client certificate is rotated in time: a new file, the link moved, the connection replaced', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'skiff-certificates-'))
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const stop = new AbortController()
  try {
    const ca = await createAuthority('ca', clock.now(), 100)
    const store = createCertificateStore(directory, 'kubelet-client')
    assert.equal(await store.current(), undefined)
    const first = await issueCertificate(ca, { commonName: 'system:node:n', organizations: ['system:nodes'], usage: 'client', validDays: 10 }, clock.now())
    await store.update(first, clock.now())
    assert.deepEqual((await lstat(store.currentPath)).isSymbolicLink(), true)
    const asked: unknown[] = []
    const client = {
      of: () => ({
        create: async (request: { spec: { request: string; usages: string[]; signerName: string } }) => {
          asked.push(request.spec)
          return { metadata: { name: 'csr-1' } }
        },
        get: async () => {
          const { request } = asked.at(-1) as { request: string }
          const content = parseCertificateRequest(request)
          assert.ok(typeof content !== 'string')
          const certificate = await signRequest(content, ca, { usages: ['digital signature', 'client auth'], durationMs: 10 * 86_400_000, nowMs: clock.now() })
          return { status: { certificate } }
        },
      }),
    } as unknown as Client
    const tools = { clock, random: seededRandom(1), log: noLog, metrics: noMetrics } as unknown as ProcessTools
    let renewed = () => {}
    const done = new Promise<void>((resolve) => {
      renewed = resolve
    })
    const manager = createCertificateManager({
      name: 'client',
      store,
      client: () => client,
      wanted: () => wantedClientCertificate('n'),
      tools,
      onRenewed: renewed,
    })
    const running = manager.run(stop.signal)
    await clock.advance(6 * 86_400_000)
    assert.equal(asked.length, 0)
    await clock.advance(4 * 86_400_000)
    await done
    const next = await store.current()
    assert.ok(next && next.cert !== first.cert && validityOf(next.cert).untilMs > validityOf(first.cert).untilMs)
    assert.equal((await readdir(directory)).length, 3)
    assert.equal((asked[0] as { signerName: string }).signerName, 'kubernetes.io/kube-apiserver-client-kubelet')
    stop.abort()
    await running
  } finally {
    stop.abort()
    await rm(directory, { recursive: true, force: true })
  }
})
