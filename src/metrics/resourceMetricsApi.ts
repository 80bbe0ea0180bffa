/**
 * The resource metrics API (L3): samples nodes and serves metrics.k8s.io from the samples, as upstream's metrics-server does in a Deployment of its own.
 * The process that assembles an API server offers `group` to it and runs `component`.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { pods, resourceMetricsGroup } from './group.ts'
import { type BoundContainers, readResourceMetrics } from './resourceMetrics.ts'
import { type ClusterObjects, createSampler, type MeasureNode } from './sampler.ts'
import type { NodeSample } from './samples.ts'
import { UsageStore } from './usageStore.ts'

export interface ResourceMetricsApiDeps {
  readonly objects: ClusterObjects
  /** Reads a page of a node's kubelet. */
  readonly kubelets: {
    get(nodeName: string, path: string, options: { readonly limitBytes: number; readonly signal: AbortSignal }): Promise<{ status: number; body: Buffer }>
  }
  /** Measures a node whose kubelet runs in this process. Undefined: it does not. */
  readonly measureOwn?: ((nodeName: string) => Promise<NodeSample> | undefined) | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

/** A thousand containers take about half a megabyte. */
const limitBytes = 8 * 1024 * 1024

export function createResourceMetricsApi({ objects, kubelets, measureOwn, clock, log, metrics }: ResourceMetricsApiDeps) {
  const store = new UsageStore()
  const measure: MeasureNode = async (nodeName, signal) => {
    const own = measureOwn?.(nodeName)
    if (own) return own
    const requestedMs = clock.now()
    const { status, body } = await kubelets.get(nodeName, '/metrics/resource', { limitBytes, signal })
    if (status !== 200) throw new Error(`the kubelet answered ${status}`)
    return readResourceMetrics(body.toString(), requestedMs, boundTo(objects, nodeName), clock)
  }
  return {
    group: resourceMetricsGroup({ objects, store, clock }),
    component: createSampler({ objects, measure, store, clock, log, metrics }),
  }
}

/** A node's kubelet may speak of the pods that are bound to the node, and of no others. */
function boundTo(objects: ClusterObjects, nodeName: string): BoundContainers {
  return (namespace, name) => {
    const spec = objects.get<Pod & KubeObject>(pods, namespace, name)?.spec
    if (spec?.nodeName !== nodeName) return undefined
    const { containers, initContainers = [], ephemeralContainers = [] } = spec
    return new Set([...containers, ...initContainers, ...ephemeralContainers].map((container) => container.name))
  }
}
