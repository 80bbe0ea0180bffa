/**
 * metrics.k8s.io/v1beta1 as a computed group (L3): the nodes, and the running pods, of which usage is known.
 * Upstream: metrics-server pkg/api (node.go, pod.go).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject, ObjectMeta } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { formatTime } from '#base/time'
import { apiVersion, group, type NodeMetrics, nodeMetricsKind, type PodMetrics, podMetricsKind, version } from './kinds.ts'
import type { NodeReading, PodReading } from './readings.ts'
import { type ClusterObjects, nodes } from './sampler.ts'
import type { UsageStore } from './usageStore.ts'

export interface ResourceMetricsDeps {
  readonly objects: Pick<ClusterObjects, 'get' | 'list'>
  readonly store: UsageStore
  readonly clock: Clock
}

export interface Request {
  readonly namespace: string
}

export interface Get extends Request {
  readonly name: string
}

export interface List extends Request {
  selects(metadata: Frozen<ObjectMeta>): boolean
}

type FrozenPod = Frozen<Pod & KubeObject>
type FrozenNode = Frozen<Node & KubeObject>

export const pods = { group: '', resource: 'pods' }
/** After so many pods the time is looked at: a selector may be long. */
const slice = 100
const sliceMs = 10

export function resourceMetricsGroup({ objects, store, clock }: ResourceMetricsDeps) {
  const usageOfPod = (pod: FrozenPod, created: string) => {
    const { namespace, name } = pod.metadata
    const usage = pod.status?.phase === 'Running' && pod.spec.nodeName ? store.pod(pod.spec.nodeName, `${namespace}/${name}`) : undefined
    return usage && podMetrics(pod, usage, created)
  }
  const usageOfNode = (node: FrozenNode, created: string) => {
    const usage = store.node(node.metadata.name ?? '')
    return usage && nodeMetrics(node, usage, created)
  }
  const nowText = () => formatTime(clock.now())
  return {
    group,
    version,
    priorities: { groupPriorityMinimum: 100, versionPriority: 100 },
    resources: [
      {
        ...nodeMetricsKind,
        get({ name }: Get): NodeMetrics {
          const node = objects.get<Node & KubeObject>(nodes, '', name)
          // The singular is upstream's: its lister's text.
          if (!node) throw notFound({ group: '', resource: 'node' }, name)
          return usageOfNode(node, nowText()) ?? refuse('nodemetrics', name)
        },
        list({ selects }: List): NodeMetrics[] {
          const created = nowText()
          const selected = objects.list<Node & KubeObject>(nodes).filter(({ metadata }) => selects(metadata))
          return selected.flatMap((node) => usageOfNode(node, created) ?? []).sort(byName)
        },
      },
      {
        ...podMetricsKind,
        get({ namespace, name }: Get): PodMetrics {
          const pod = objects.get<Pod & KubeObject>(pods, namespace, name)
          if (pod?.status?.phase !== 'Running') throw notFound(pods, name)
          return usageOfPod(pod, nowText()) ?? refuse('podmetrics', `${namespace}/${name}`)
        },
        async list({ namespace, selects }: List): Promise<PodMetrics[]> {
          const created = nowText()
          const found: PodMetrics[] = []
          let begunMs = clock.monotonicMs()
          for (const [index, pod] of objects.list<Pod & KubeObject>(pods, namespace === '' ? undefined : namespace).entries()) {
            if (index % slice === slice - 1 && clock.monotonicMs() - begunMs >= sliceMs) {
              await clock.turn()
              begunMs = clock.monotonicMs()
            }
            const metrics = selects(pod.metadata) && usageOfPod(pod, created)
            if (metrics) found.push(metrics)
          }
          return found.sort(byName)
        },
      },
    ],
  } as const
}

function refuse(resource: string, name: string): never {
  throw notFound({ group, resource }, name)
}

function byName({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return compare(a.namespace ?? '', b.namespace ?? '') || compare(a.name ?? '', b.name ?? '')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** @param created the time of the answer, which a list's objects share */
function metadataOf({ name = '', namespace, labels }: Frozen<ObjectMeta>, created: string): ObjectMeta {
  const metadata: ObjectMeta = namespace ? { name, namespace, creationTimestamp: created } : { name, creationTimestamp: created }
  if (labels) metadata.labels = labels
  return metadata
}

function nodeMetrics({ metadata }: FrozenNode, { timestamp, window, usage }: NodeReading, created: string): NodeMetrics {
  return { kind: 'NodeMetrics', apiVersion, metadata: metadataOf(metadata, created), timestamp, window, usage }
}

function podMetrics({ metadata }: FrozenPod, { timestamp, window, containers }: PodReading, created: string): PodMetrics {
  return { kind: 'PodMetrics', apiVersion, metadata: metadataOf(metadata, created), timestamp, window, containers }
}
