/**
 * Attacks of a pod on the real node that it runs on, each a former vulnerability of Kubernetes (docs/cves.md). Pods are privileged if the attack needs
 * packets or links that an ordinary pod could make with CAP_NET_RAW: the node must stop them.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { createExec, type Exec } from '#host/exec'
import { inNetworkNamespace } from '#host/netns'
import { clusterId } from '#main/localCluster/clusterState'
import { eventually, LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { writeDockerArchive, writeWebImage } from '../../e2e/support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 120_000 }
const name = 'attacked'
const image = 'web-app:1.0'
/** The pod's user is a number, and no container sets another. */
const userImage = 'web-app:user'
let cluster: LocalCluster
let namespace: string
let node: Exec

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  namespace = `skiff-${clusterId(path.join(cluster.dir, 'home'), name)}-0`
  node = createExec(inNetworkNamespace(namespace))
  const loaded = await cluster.skiff([
    'image',
    'load',
    '--name',
    name,
    ...(await writeWebImage(cluster.dir, ['1.0'])),
    await writeDockerArchive(cluster.dir, userImage, '1234'),
  ])
  assert.equal(loaded.code, 0, loaded.stderr)
})
after(async () => {
  if (!skip) await cluster?.delete()
})

const create = (pod: string, spec: object) =>
  cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: pod }, spec: { terminationGracePeriodSeconds: 0, ...spec } }), [
    'apply',
    '-f',
    '-',
  ])
const container = (more: object = {}) => ({ name: 'main', image, command: ['sleep', '600'], ...more })
const privileged = { securityContext: { privileged: true } }
const inPod = async (pod: string, script: string) => (await cluster.kubectl(['exec', pod, '--', 'timeout', '10', 'sh', '-c', script])).stdout.trim()
const eventsOf = (pod: string) => cluster.must(['get', 'events', '--field-selector', `involvedObject.name=${pod}`, '-o', 'jsonpath={.items[*].message}'])
const phaseOf = (pod: string) => cluster.must(['get', 'pod', pod, '-o', 'jsonpath={.status.phase} {.status.containerStatuses[0].state}'])

test('SVC-02 CVE-2020-8558 what listens on the node’s loopback alone is not reached by a pod', options, async () => {
  const program = "require('net').createServer((s) => s.end('loopback\\n')).listen(7777, '127.0.0.1', () => console.log('ready'))"
  const listener = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(listener.stdout, 'data')
    await create('neighbour', { containers: [container(privileged)] })
    await cluster.must(['wait', '--for=condition=Ready', 'pod/neighbour', '--timeout=60s'])
    // The program says itself that it got no connection; the answer would be `loopback`.
    const ask = 'nc -w 3 127.0.0.1 7777 </dev/null 2>&1; echo asked'
    assert.match(await inPod('neighbour', ask), /^nc: .*Connection refused\nasked$/)
    const gateway = await inPod('neighbour', "ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'")
    assert.match(gateway, /^\d+\.\d+\.\d+\.\d+$/)
    // The pod gives up its own loopback addresses and routes them to the node.
    const steal = `echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet; ip addr flush dev lo; ip route add 127.0.0.0/8 via ${gateway}; ip route get 127.0.0.1`
    assert.match(await inPod('neighbour', steal), new RegExp(`via ${gateway}`))
    assert.match(await inPod('neighbour', ask), /^nc: .*(timed out|unreachable|Invalid argument)\nasked$/)
    const { stdout } = await node.run(process.execPath, ['-e', "require('net').connect(7777, '127.0.0.1').on('data', (d) => process.stdout.write(d))"])
    assert.equal(stdout.trim(), 'loopback', 'the node itself reaches it')
  } finally {
    listener.kill('SIGKILL')
  }
})

test('NET-01 CVE-2020-10749 the node takes no IPv6 routes from what pods announce', options, async () => {
  await create('router', { containers: [container()] })
  await cluster.must(['wait', '--for=condition=Ready', 'pod/router', '--timeout=60s'])
  const { stdout } = await node.run('sh', ['-c', 'cd /proc/sys/net/ipv6/conf 2>/dev/null && for i in *; do echo $i=$(cat $i/accept_ra); done'])
  const accepting = stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '' && !/=0$/.test(line) && !line.startsWith('lo='))
  assert.deepEqual(accepting, [])
})

test('KUB-11 CVE-2017-1002101 CVE-2021-25741 a part of a volume that is a link out of it is not mounted', options, async () => {
  const volumeMounts = [{ name: 'v', mountPath: '/v' }]
  await create('linker', {
    volumes: [{ name: 'v', emptyDir: {} }],
    initContainers: [container({ name: 'link', command: ['sh', '-c', 'ln -s /etc /v/out; ln -s ../../../../../../../../etc /v/up'], volumeMounts })],
    containers: [container({ volumeMounts: [{ name: 'v', mountPath: '/host', subPath: 'out' }] })],
  })
  const failed = await eventually(
    'the refusal',
    60_000,
    () => eventsOf('linker'),
    (text) => /subPath|outside|symlink/i.test(text),
  )
  assert.match(failed, /fail/i)
  assert.match(await phaseOf('linker'), /waiting/)
})

/** Restarts of one container come ever more slowly, so that several share them. */
const enoughMounts = 12

test('KUB-11 CVE-2021-25741 a part of a volume that is exchanged for a link between checks leads nowhere', { skip, timeout: 180_000 }, async () => {
  const swap = 'mkdir -p /v/part /v/other; while :; do mv /v/part /v/kept; ln -s /etc /v/part; rm /v/part; mv /v/kept /v/part; done'
  const volumeMounts = [{ name: 'v', mountPath: '/v' }]
  const looks = Array.from({ length: 8 }, (_, index) => `look${index}`)
  const look = 'if [ -e /part/passwd ] || [ -e /part/hostname ]; then echo escaped; sleep 600; fi; exit 1'
  await create('swapper', {
    volumes: [{ name: 'v', emptyDir: {} }],
    containers: [
      container({ name: 'swap', command: ['sh', '-c', swap], volumeMounts }),
      ...looks.map((name) => container({ name, command: ['sh', '-c', look], volumeMounts: [{ name: 'v', mountPath: '/part', subPath: 'part' }] })),
    ],
  })
  const status = 'jsonpath={range .status.containerStatuses[*]}{.name} {.restartCount} {.containerID}{"\\n"}{end}'
  // Each container that was made had its mount done by the runtime; a start that meets the link before is refused by the kubelet and does not count.
  const tries = async () => {
    const lines = (await cluster.must(['get', 'pod', 'swapper', '-o', status])).trim().split('\n')
    return lines.reduce((sum, line) => {
      const [name = '', restartCount, id = ''] = line.split(' ')
      return name.startsWith('look') && id !== '' ? sum + Number(restartCount) + 1 : sum
    }, 0)
  }
  await eventually('enough mounts', 110_000, tries, (count) => count >= enoughMounts)
  for (const name of looks)
    for (const which of [[], ['--previous']]) assert.doesNotMatch((await cluster.kubectl(['logs', 'swapper', '-c', name, ...which])).stdout, /escaped/)
  await cluster.must(['delete', 'pod', 'swapper', '--force', '--wait=false'])
})

test('KUB-11 CVE-2024-10220 CVE-2025-1767 a gitRepo volume starts no git', options, async () => {
  const volumes = [{ name: 'g', gitRepo: { repository: '/etc', directory: 'g/.git', revision: 'main' } }]
  await create('cloner', { volumes, containers: [container({ volumeMounts: [{ name: 'g', mountPath: '/g' }] })] })
  const failed = await eventually(
    'the refusal',
    60_000,
    () => eventsOf('cloner'),
    (text) => /plugin/.test(text),
  )
  assert.match(failed, /no volume plugin matched/)
  assert.doesNotMatch(await phaseOf('cloner'), /running/)
})

test('KUB-19 CVE-2019-11245 a container runs as its image’s user again after a restart', options, async () => {
  const command = ['sh', '-c', 'id -u; exit 1']
  await create('restarted', { containers: [container({ image: userImage, command })] })
  const restarts = () => cluster.must(['get', 'pod', 'restarted', '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'])
  await eventually('two restarts', 90_000, restarts, (count) => Number(count) >= 2)
  assert.equal(
    await eventually(
      'its log',
      20_000,
      () => cluster.must(['logs', 'restarted']),
      (text) => text !== '',
    ),
    '1234',
  )
})

test('KUB-19 CVE-2023-2431 an empty name of a local seccomp profile does not mean none', options, async () => {
  const seccomp = (localhostProfile?: string) => ({
    containers: [container({ securityContext: { seccompProfile: { type: 'Localhost', ...(localhostProfile === undefined ? {} : { localhostProfile }) } } })],
  })
  await assert.rejects(create('unconfined', seccomp()), /must be set when seccomp type is Localhost/)
  await create('unconfined', seccomp(''))
  const waiting = () => cluster.must(['get', 'pod', 'unconfined', '-o', 'jsonpath={.status.containerStatuses[0].state.waiting}'])
  const told = await eventually('the refusal', 60_000, waiting, (text) => /Error/.test(text))
  assert.match(told, /localhostProfile must be set if seccompProfile type is Localhost/)
})

test('KUB-11 CVE-2017-1002102 no container writes into the volumes that the kubelet fills', options, async () => {
  await cluster.must(['create', 'configmap', 'filled', '--from-literal=a=b'])
  await cluster.must(['create', 'secret', 'generic', 'filled', '--from-literal=a=b'])
  const fieldRef = { fieldPath: 'metadata.name' }
  const items = [{ path: 'a', fieldRef }]
  const volumes = [
    { name: 'config', configMap: { name: 'filled' } },
    { name: 'secret', secret: { secretName: 'filled' } },
    { name: 'downward', downwardAPI: { items } },
    { name: 'projected', projected: { sources: [{ configMap: { name: 'filled' } }] } },
  ]
  const volumeMounts = volumes.map(({ name: volume }) => ({ name: volume, mountPath: `/v/${volume}`, readOnly: false }))
  await create('writer', { volumes, containers: [container({ volumeMounts })] })
  await cluster.must(['wait', '--for=condition=Ready', 'pod/writer', '--timeout=60s'])
  const write =
    'cd /v/$V && { cat a >/dev/null && (ln -s / ..data_tmp || mv ..data x || rm a || touch b || echo c >a) 2>/dev/null && echo written || echo refused; }'
  for (const { name: volume } of volumes) assert.equal(await inPod('writer', `V=${volume}; ${write}`), 'refused', volume)
})

test('KUB-18 a pod whose variables double forty times gets CreateContainerConfigError, and the node stays healthy', options, async () => {
  const env = [{ name: 'A0', value: 'x'.repeat(32) }, ...Array.from({ length: 40 }, (_, i) => ({ name: `A${i + 1}`, value: `$(A${i})$(A${i})` }))]
  const agents = async () => (JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as { pids: { role: string; pid: number }[] }).pids
  const before = await agents()
  await create('doubling', { containers: [container({ env })] })
  const state = await eventually(
    'the container’s state',
    60_000,
    () => phaseOf('doubling'),
    (text) => text.includes('CreateContainerConfigError'),
  )
  assert.match(state, /^Pending/)
  await create('beside', { containers: [container()] })
  await cluster.must(['wait', '--for=condition=Ready', 'pod/beside', '--timeout=60s'])
  assert.deepEqual(await agents(), before)
})

test('KUB-18 a container of 100 KiB of environment starts and has all of it', options, async () => {
  const env = Array.from({ length: 20 }, (_, i) => ({ name: `V${i}`, value: `${i % 10}`.repeat(5 * 1024) }))
  await create('roomy', { containers: [container({ env })] })
  await cluster.must(['wait', '--for=condition=Ready', 'pod/roomy', '--timeout=60s'])
  const bytes = await inPod('roomy', 'env | grep "^V[0-9]*=" | wc -c')
  assert.ok(Number(bytes) > 100 * 1024, `${bytes} bytes`)
})
