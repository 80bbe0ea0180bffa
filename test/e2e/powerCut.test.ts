/**
 * A power cut: every process of a cluster with two real nodes is killed, and its namespaces, interfaces and cgroups are removed, as at a boot. `up` brings back
 * objects, addresses, ports, certificates and containers. Then the directory is removed as well, and prune removes what is left of the cluster on the host.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { clusterId } from '#main/localCluster/clusterState'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { webCommand, writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const name = 'e2e-cut'
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

const home = () => path.join(cluster.dir, 'home')
const clusterDir = () => path.join(home(), 'clusters', name)

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: webCommand,
    ports: [{ containerPort: 8080 }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  }
  const template = { metadata: { labels: { app: 'web' } }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } }
  const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'web' } } }
  const objects = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'web' } },
        template: { ...template, spec: { ...template.spec, topologySpreadConstraints: [spread] } },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { color: 'blue' } },
  ]
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'], 70_000)
})

after(async () => {
  if (skip) return
  await cluster?.delete()
  await cluster?.skiff(['prune', '-q'])
})

/** What has to be the same afterwards. */
async function identity() {
  const read = (...words: string[]) => cluster.must(['get', ...words])
  return {
    server: (JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as { server: string }).server,
    nodes: await read('nodes', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.addresses[0].address} {.spec.podCIDR}{"\\n"}{end}'),
    service: await read('service', 'web', '-o', 'jsonpath={.spec.clusterIP} {.spec.ports[0].nodePort}'),
    configMap: await read('configmap', 'kept', '-o', 'jsonpath={.metadata.uid} {.data.color}'),
    pods: (await read('pods', '-l', 'app=web', '-o', 'jsonpath={range .items[*]}{.metadata.uid} {.spec.nodeName}{"\\n"}{end}')).split('\n').sort(),
    certificates: (await cluster.skiff(['certs', 'check', name])).stdout.replace(/ +\d+\w+ +/g, ' '),
  }
}

/** Pids of the processes with the cluster's mark, and their descendants. */
function processes(): number[] {
  const all = fs
    .readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map(Number)
  const read = (pid: number, file: string) => {
    try {
      return fs.readFileSync(`/proc/${pid}/${file}`, 'utf8')
    } catch {
      return ''
    }
  }
  const parentOf = (pid: number) => Number(/\) \S (\d+)/.exec(read(pid, 'stat'))?.[1] ?? 0)
  const isOurs = (pid: number): boolean => pid > 1 && (read(pid, 'environ').includes(`SKIFF_CLUSTER_DIR=${clusterDir()}`) || isOurs(parentOf(pid)))
  return all.filter(isOurs)
}

async function cutPower(): Promise<void> {
  const killed = processes()
  assert.ok(killed.length > 10, `${killed.length} processes`)
  for (const pid of killed) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended with its node.
    }
  }
  await eventually(
    'the end of all processes',
    10_000,
    async () => processes(),
    (found) => found.length === 0,
  )
}

/** What a boot starts without. */
async function dropKernelState(): Promise<void> {
  const id = clusterId(home(), name)
  const now = newTraces(before_)
  for (const link of now.links ?? []) run('ip', 'link', 'del', link)
  for (const namespace of now.namespaces ?? []) run('ip', 'netns', 'del', namespace.split(' ')[0] ?? '')
  assert.deepEqual(
    hostTraces().links?.filter((link) => link.includes(id)),
    [],
  )
}

/** The other end of a pair is gone with the first. */
function run(file: string, ...args: string[]): void {
  try {
    execFileSync(file, args, { stdio: 'ignore' })
  } catch {
    // Already gone.
  }
}

const answer = async () => {
  const port = await cluster.must(['get', 'service', 'web', '-o', 'jsonpath={.spec.ports[0].nodePort}'])
  return fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(2000) }).then(
    ({ status }) => status,
    () => 0,
  )
}

test('CRI-08 after a power cut up brings back objects, addresses, ports, certificates and containers of two nodes', options, async () => {
  const earlier = await identity()
  assert.equal(earlier.pods.length, 2)
  await eventually('an answer before', 10_000, answer, (status) => status === 200)
  await cutPower()
  await dropKernelState()
  const up = await cluster.skiff(['up', name])
  assert.equal(up.code, 0, up.stderr)
  await eventually(
    'two ready pods in new containers',
    60_000,
    () =>
      cluster.must([
        'get',
        'pods',
        '-l',
        'app=web',
        '-o',
        'jsonpath={.items[*].status.containerStatuses[*].ready} {.items[*].status.containerStatuses[*].restartCount}',
      ]),
    (text) => /^true true [1-9] [1-9]$/.test(text),
  )
  assert.deepEqual(await identity(), earlier)
  await eventually('an answer', 20_000, answer, (status) => status === 200)
})

test('prune finds and removes a cluster whose directory is gone, and nothing else', options, async () => {
  const other = await LocalCluster.start('e2e-other', [])
  try {
    const bystander = hostTraces()
    // Its processes write there meanwhile, and a folder that has got a file again is not removed.
    const remove = async () => {
      fs.rmSync(clusterDir(), { recursive: true, force: true })
      return 'removed'
    }
    await eventually(
      'the end of the directory',
      10_000,
      () => remove().catch(String),
      (answer) => answer === 'removed',
    )
    const dry = await cluster.skiff(['prune', '--dry-run'])
    assert.equal(dry.code, 0, dry.stderr)
    const id = clusterId(home(), name)
    for (const trace of [`interface skiff-${id}`, `network namespace skiff-${id}-0`, `network namespace skiff-${id}-api`, `init\\.sh`]) {
      assert.match(dry.stdout, new RegExp(`^would remove .*${trace}`, 'm'))
    }
    assert.doesNotMatch(dry.stdout, new RegExp(clusterId(path.join(other.dir, 'home'), 'e2e-other')))
    assert.ok(bystander.links?.includes(`skiff-${id}`))
    const pruned = await cluster.skiff(['prune'])
    assert.equal(pruned.code, 0, pruned.stderr)
    assert.match((await cluster.skiff(['prune'])).stdout, /^There is nothing to remove$/m)
    const status = await other.skiff(['status', 'e2e-other'])
    assert.match(status.stdout, /^state: +Ready$/m)
  } finally {
    await other.delete()
  }
  assert.deepEqual(newTraces(before_), {})
})
