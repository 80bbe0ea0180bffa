/**
 * A real node whose pods together use more memory than allowed: upstream's order decides which pod is evicted, and the others keep their processes;
 * the node has MemoryPressure, refuses pods without requests meanwhile, and recovers afterwards.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Container, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deployments, pods, priorityClasses } from '#client/builtIn'
import { busybox } from '../../e2e/kubeletContainerd.ts'
import { eventually } from '../../e2e/support/localCluster.ts'
import { BoundedNode, obstacleToNode, withinMs } from './support/boundedNode.ts'

const skip = await obstacleToNode()
const options = { skip, timeout: 120_000 }
const mebibyte = 2 ** 20
/** For all pods together, of which 100Mi are to stay free. */
const podsMebibytes = 400
let node: BoundedNode

before(async () => {
  if (skip) return
  const memoryKibibytes = Number(/^MemTotal:\s+(\d+)/m.exec(fs.readFileSync('/proc/meminfo', 'utf8'))?.[1])
  const reserved = memoryKibibytes - podsMebibytes * 1024
  node = await BoundedNode.start({
    kubelet: {
      systemReserved: { memory: `${reserved}Ki` },
      evictionHard: { 'memory.available': '100Mi' },
      evictionPressureTransitionPeriod: '10s',
    },
  })
})

after(() => (skip ? undefined : node?.stop()))

/** Holds so many mebibytes until SIGTERM. */
const holding = (mebibytes: number) =>
  `trap 'exit 0' TERM; awk 'BEGIN { for (i = 0; i < ${mebibytes}; i++) a[i] = sprintf("%${mebibyte}d", i); print "full"; fflush(); while (1) system("sleep 1000") }' & wait`

function container(script: string, memory?: string): Container {
  const resources = memory === undefined ? {} : { requests: { memory } }
  return { name: 'main', image: busybox, imagePullPolicy: 'Never', command: ['sh', '-c', script], resources }
}

type NewPod = Pick<Pod, 'metadata' | 'spec'>

function pod(name: string, script: string, memory?: string, spec: Partial<Pod['spec']> = {}): NewPod {
  const base = { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [container(script, memory)] }
  return { metadata: { namespace: 'default', name }, spec: { ...base, ...spec } }
}

const create = (one: NewPod) => node.client.of(pods).create(one)
const living = async () => (await node.pods()).filter(({ status }) => status?.phase !== 'Failed')
const isOfBefore = ({ metadata }: Frozen<Pod>) => ['modest', 'important'].includes(metadata.name ?? '')
async function saysPressure() {
  const { spec, status } = (await node.node()) ?? {}
  return {
    condition: status?.conditions?.find(({ type }) => type === 'MemoryPressure')?.status,
    tainted: spec?.taints?.some(({ key, effect }) => key === 'node.kubernetes.io/memory-pressure' && effect === 'NoSchedule') === true,
  }
}
const identity = ({ metadata, status }: Frozen<Pod>) => {
  const [first] = status?.containerStatuses ?? []
  return [metadata.uid, first?.containerID, first?.restartCount]
}

test('KUB-13 of pods that use more than they asked for the least important goes, whatever the others use; the rest keep their processes', options, async () => {
  await node.client.of(priorityClasses).create({ metadata: { name: 'important' }, value: 1000 })
  await create(pod('modest', holding(50), '100Mi'))
  await create(pod('important', holding(150), '10Mi', { priorityClassName: 'important' }))
  const before_ = (await node.running('modest', 'important')).map(identity)
  // The first of its kind is greedy, the one in its place is not.
  const mark = path.join(node.nodefs, 'mark')
  fs.mkdirSync(mark)
  const template = {
    metadata: { labels: { app: 'greedy' } },
    spec: {
      ...pod('', '').spec,
      containers: [
        { ...container(`if mkdir /mark/seen; then ${holding(110)}; else exec sleep 1000; fi`, '10Mi'), volumeMounts: [{ name: 'mark', mountPath: '/mark' }] },
      ],
      volumes: [{ name: 'mark', hostPath: { path: mark } }],
    },
  }
  await node.client.of(deployments).create({
    metadata: { namespace: 'default', name: 'greedy' },
    spec: { replicas: 1, selector: { matchLabels: { app: 'greedy' } }, template },
  })
  const evicted = await eventually(
    'a pod is evicted',
    withinMs,
    async () => (await node.pods()).find(({ status }) => status?.phase === 'Failed'),
    (found) => found !== undefined,
  )
  assert.match(evicted?.metadata.name ?? '', /^greedy-/)
  assert.equal(evicted?.status?.reason, 'Evicted')
  assert.match(
    evicted?.status?.message ?? '',
    /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+Ki\. Container main was using \d+Ki, request is 10Mi, has larger consumption of memory\. $/,
  )
  assert.deepEqual(
    evicted?.status?.conditions?.filter(({ type }) => type === 'DisruptionTarget').map(({ status, reason }) => [status, reason]),
    [['True', 'TerminationByKubelet']],
  )
  await eventually('the node says so', withinMs, saysPressure, (says) => says.condition === 'True' && says.tainted)
  await create(pod('undemanding', 'exec sleep 1000'))
  const waiting = await eventually(
    'the scheduler has looked at it',
    withinMs,
    () => node.pod('undemanding'),
    ({ status }) => status?.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') === true,
  )
  assert.match(waiting.status?.conditions?.[0]?.message ?? '', /1 node\(s\) had untolerated taint\(s\)/)
  await eventually('the pressure is over', withinMs, saysPressure, (says) => says.condition === 'False' && !says.tainted)
  const found = await eventually(
    'one in the place of the evicted pod, the one that had to wait, and no other',
    withinMs,
    living,
    (now) => now.length === 4 && now.every(({ status }) => status?.containerStatuses?.[0]?.ready === true),
  )
  assert.deepEqual(found.map(({ metadata }) => metadata.name?.replace(/^greedy-.*/, 'greedy')).sort(), ['greedy', 'important', 'modest', 'undemanding'])
  assert.deepEqual(found.filter(isOfBefore).map(identity), before_)
})

test('KUB-13 an evicted pod stays evicted when the kubelet is killed and restarts, and the others keep their processes', options, async () => {
  const before_ = (await node.pods()).map(identity)
  await node.killKubelet()
  await node.startKubelet()
  await eventually('all pods have their status', withinMs, living, (now) => now.every(({ status }) => status?.containerStatuses?.[0]?.ready === true))
  assert.deepEqual((await node.pods()).map(identity), before_)
})

test('KUB-13 in the end nothing is left of pods that were evicted or deleted: no mount, cgroup, interface, process or directory', options, async () => {
  await node.empty('greedy', ['modest', 'important', 'undemanding'])
})
