/** Two real nodes on a stock Debian 12: cgroup v2, AppArmor and IPVS, which other tests' hosts may lack. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { clusterId } from '#main/localCluster/clusterState'
import { eventually, hostTraces, type LocalCluster } from '../../e2e/support/localCluster.ts'
import { webCommand } from '../../e2e/support/webImage.ts'
import { cgroupOf, command, create, image, podOf, slowMs, startOnMachine, untilField, untilReady } from '../support/machineCluster.ts'

const options = { timeout: 2 * slowMs }
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-machine-'))
const traces = hostTraces()
let cluster: LocalCluster

before(async () => {
  // The kernel's IPVS is a module, which an administrator loads for this mode.
  for (const module of ['ip_vs', 'ip_vs_rr']) execFileSync('modprobe', [module])
  cluster = await startOnMachine('machine', directory, ['--nodes', '2', '--proxy-mode', 'ipvs'])
})
after(() => fs.rmSync(directory, { recursive: true, force: true }))

const equal = { cpu: '200m', memory: '64Mi' }
const read = (folder: string, file: string) => fs.readFileSync(path.join(folder, file), 'utf8').trim()
/** A file in the container's own view of the machine. */
const inside = (pod: string, file: string) => cluster.must(['exec', pod, '--', 'cat', file], slowMs)

test(
  'KUB-14 RES-02 pods of each class have their place, weight and limits in the unified hierarchy, and their score when memory runs out',
  options,
  async () => {
    await create(
      cluster,
      podOf('guaranteed', { resources: { limits: equal } }),
      podOf('burstable', { resources: { requests: equal, limits: { memory: '128Mi' } } }),
      podOf('best-effort'),
    )
    await untilReady(cluster, 'guaranteed', 'burstable', 'best-effort')
    const [guaranteed, burstable, bestEffort] = await Promise.all(['guaranteed', 'burstable', 'best-effort'].map((pod) => cgroupOf(cluster, pod)))
    assert.ok(guaranteed && burstable && bestEffort)
    assert.deepEqual(
      [guaranteed, burstable, bestEffort].map((one) => path.basename(path.dirname(one))),
      ['kubepods', 'burstable', 'besteffort'],
    )
    assert.equal(read(guaranteed, 'memory.max'), `${64 * 2 ** 20}`)
    assert.equal(read(guaranteed, 'cpu.max'), '20000 100000')
    assert.equal(read(burstable, 'memory.max'), `${128 * 2 ** 20}`)
    assert.equal(read(burstable, 'cpu.max'), 'max 100000')
    assert.equal(read(bestEffort, 'memory.max'), 'max')
    assert.equal(read(guaranteed, 'cpu.weight'), read(burstable, 'cpu.weight'))
    assert.equal(read(bestEffort, 'cpu.weight'), '1')
    assert.equal(await inside('guaranteed', '/proc/1/oom_score_adj'), '-997')
    assert.equal(await inside('best-effort', '/proc/1/oom_score_adj'), '1000')
    const score = Number(await inside('burstable', '/proc/1/oom_score_adj'))
    assert.ok(score > 2 && score < 1000, `${score}`)
  },
)

test('RES-06 a container beyond its memory is OOMKilled with exit code 137', options, async () => {
  await create(cluster, podOf('greedy', { script: 'tail /dev/zero', resources: { limits: { memory: '32Mi' } } }))
  await untilField(
    cluster,
    'greedy',
    '{.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}',
    /^OOMKilled 137$/,
  )
})

test('KUB-19 containers run under the AppArmor profile that they name, and one that is not loaded keeps the pod from running', options, async () => {
  const profile = path.join(directory, 'profile')
  fs.writeFileSync(profile, 'profile skiff-test flags=(attach_disconnected) {\n  file,\n  capability,\n  signal,\n  deny /tmp/** w,\n}\n')
  execFileSync('apparmor_parser', ['--replace', profile])
  const confined = (appArmorProfile: object) => ({ securityContext: { appArmorProfile } })
  await create(
    cluster,
    podOf('by-default', confined({ type: 'RuntimeDefault' })),
    podOf('by-name', confined({ type: 'Localhost', localhostProfile: 'skiff-test' })),
    podOf('unconfined', confined({ type: 'Unconfined' })),
    podOf('unknown', confined({ type: 'Localhost', localhostProfile: 'nobody-loaded-this' })),
  )
  await untilReady(cluster, 'by-default', 'by-name', 'unconfined')
  assert.equal(await inside('by-default', '/proc/1/attr/current'), 'cri-containerd.apparmor.d (enforce)')
  assert.equal(await inside('by-name', '/proc/1/attr/current'), 'skiff-test (enforce)')
  assert.equal(await inside('unconfined', '/proc/1/attr/current'), 'unconfined')
  const denied = await cluster.kubectl(['exec', 'by-name', '--', 'touch', '/tmp/x'], slowMs)
  assert.match(denied.stderr, /Permission denied/)
  await untilField(cluster, 'unknown', '{.status.containerStatuses[0].state.waiting.reason}', /^CreateContainerError$/)
  await cluster.must(['delete', 'pod', 'unknown'], slowMs)
})

test('KUB-19 a pod with a user namespace of its own is refused with the reason of containerd 1.6', options, async () => {
  await create(cluster, podOf('own-users', { spec: { hostUsers: false } }))
  const messages = () => cluster.must(['get', 'events', '--field-selector', 'involvedObject.name=own-users', '-o', 'jsonpath={.items[*].message}'], slowMs)
  await eventually('the reason', slowMs, messages, (text) => /user ?namespace/i.test(text))
  await cluster.must(['delete', 'pod', 'own-users'], slowMs)
})

test('SVC-07 in IPVS mode the virtual servers of a Service lead to its pods on both nodes', options, async () => {
  const container = {
    name: 'app',
    image,
    imagePullPolicy: 'Never',
    command: webCommand,
    env: [{ name: 'VERSION', value: '1' }],
    ports: [{ containerPort: 8080 }],
  }
  const labels = { app: 'web' }
  const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: labels } }
  await create(
    cluster,
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, topologySpreadConstraints: [spread], containers: [container] } },
      },
    },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { type: 'NodePort', selector: labels, ports: [{ port: 80, targetPort: 8080 }] } },
  )
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=280s'], slowMs)
  const [clusterIp, nodePort] = (await cluster.must(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP} {.spec.ports[0].nodePort}'], slowMs)).split(' ')
  const pods = (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].status.podIP}'], slowMs)).split(' ')
  const node = `skiff-${clusterId(cluster.env.SKIFF_HOME as string, cluster.name)}-0`
  const list = async () => execFileSync('ip', ['netns', 'exec', node, 'ipvsadm', '-Ln'], { encoding: 'utf8' })
  const listed = await eventually('the virtual server', slowMs, list, (text) => pods.every((ip) => text.includes(`${ip}:8080`)))
  assert.ok(listed.includes(`TCP  ${clusterIp}:80 rr`), listed)
  assert.match(listed, new RegExp(`TCP  \\S+:${nodePort} rr`))
  // Debian's busybox crashes in wget on this emulated processor.
  const ask = async (port: number, address: string) =>
    execFileSync('ip', ['netns', 'exec', node, 'bash', '-c', `exec 3<>/dev/tcp/${address}/${port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`], {
      encoding: 'utf8',
      timeout: slowMs,
    })
  const names = new Set<string>()
  for (let asked = 0; asked < 8; asked++) names.add(/1 (web-\S+)/.exec(await ask(80, clusterIp as string))?.[1] ?? '')
  assert.equal(names.size, 2, [...names].join(', '))
})

test('ARC-04 the deleted cluster leaves nothing on the machine, no cgroup either', options, async () => {
  await command(cluster, 'delete', cluster.name)
  assert.deepEqual(hostTraces(), traces)
  const left = fs.readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' }).filter((name) => /kubepods|skiff/.test(name))
  assert.deepEqual(left, [])
})
