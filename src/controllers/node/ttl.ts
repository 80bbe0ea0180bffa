/**
 * Tells kubelets, in an annotation of their node, for how long they may keep what they have read: the longer the bigger the cluster (L3).
 * Upstream: pkg/controller/ttl (v1.36).
 */
import { nodes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'

export const ttl: ControllerDescriptor = {
  name: 'ttl-controller',
  aliases: ['ttl'],
  serviceAccount: 'ttl-controller',
  create: createTtlController,
}

const annotation = 'node.alpha.kubernetes.io/ttl'

/** The steps overlap, so that a cluster at an edge does not go to and fro. */
const steps = [
  { min: 0, max: 100, ttlSeconds: 0 },
  { min: 90, max: 500, ttlSeconds: 15 },
  { min: 450, max: 1000, ttlSeconds: 30 },
  { min: 900, max: 2000, ttlSeconds: 60 },
  { min: 1800, max: Number.POSITIVE_INFINITY, ttlSeconds: 300 },
] as const

/** The step for this many nodes, coming from the one before. */
export function nextStep(step: number, nodeCount: number): number {
  let next = step
  while (nodeCount > (steps[next]?.max ?? Number.POSITIVE_INFINITY)) next++
  while (nodeCount < (steps[next]?.min ?? 0)) next--
  return next
}

function createTtlController(context: ControllerContext) {
  const informer = context.informers.of(nodes)
  let step = 0
  let count = 0
  const counted = (change: number) => {
    count += change
    step = nextStep(step, count)
  }
  const reconciler = createReconciler(context, {
    name: ttl.name,
    queueName: 'ttlcontroller',
    workers: 5,
    async reconcile(name, signal) {
      const node = informer.store.get(name)
      const wanted = String(steps[step]?.ttlSeconds ?? 0)
      if (!node || node.metadata.annotations?.[annotation] === wanted) return undefined
      await context.client.of(nodes).patch({ name }, 'strategic', { metadata: { annotations: { [annotation]: wanted } } }, { signal })
      return undefined
    },
  })
  reconciler.watch(informer, {
    onAdd: ({ metadata }) => {
      counted(1)
      reconciler.queue.add(metadata.name ?? '')
    },
    // Nodes report every few seconds, so all of them learn of a new step soon.
    onUpdate: (_, { metadata }) => reconciler.queue.add(metadata.name ?? ''),
    onDelete: () => counted(-1),
  })
  return reconciler
}
