/**
 * `/metrics/resources` (L5): what each pod asks for and may use, as the scheduler counts it. Served by a local cluster's API server, and by the
 * scheduler's own port. Upstream: pkg/scheduler/metrics/resources (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { podLimits, podRequests, type ResourceAmounts } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { expositionAnswer } from '#apiserver/core/answer'
import type { Page } from '#apiserver/core/page'
import { exposition } from '#base/exposition'
import { labelsText, type MetricFamily, type ValueSample } from '#base/metricFamily'

export interface PodResources {
  readonly page: Page
  /** Shows these pods until the returned function is called. */
  show(pods: () => Iterable<Frozen<Pod>>): () => void
}

const path = '/metrics/resources'

/** Without pods to show, the page is empty. */
export function createPodResources(): PodResources {
  let shown: (() => Iterable<Frozen<Pod>>) | undefined
  return {
    page: {
      prefix: path,
      handle: (request) => (request.path === path ? expositionAnswer(exposition(podResourceFamilies(shown?.() ?? []), request.headers.accept)) : undefined),
    },
    show(pods) {
      shown = pods
      return () => {
        if (shown === pods) shown = undefined
      }
    },
  }
}

/** Both families; pods that have ended are left out. */
export function podResourceFamilies(pods: Iterable<Frozen<Pod>>): MetricFamily[] {
  const counted = [...pods].filter(({ spec, status }) => !spec.nodeName || !['Succeeded', 'Failed'].includes(status?.phase ?? ''))
  const family = (name: string, help: string, amounts: (pod: Frozen<Pod>) => ResourceAmounts): MetricFamily => ({
    name,
    type: 'gauge',
    help: `[STABLE] ${help}`,
    samples: counted.flatMap((pod) => samplesOf(pod, amounts(pod))),
  })
  return [
    family('kube_pod_resource_limit', 'What the pods on the cluster may use, as scheduler and kubelet count it.', podLimits),
    family('kube_pod_resource_request', 'What the pods on the cluster ask for, as scheduler and kubelet count it.', podRequests),
  ]
}

function samplesOf({ metadata, spec }: Frozen<Pod>, amounts: ResourceAmounts): ValueSample[] {
  const { namespace = '', name = '' } = metadata
  const labels = { namespace, pod: name, node: spec.nodeName ?? '', scheduler: spec.schedulerName ?? '', priority: String(spec.priority ?? '') }
  return Object.entries(amounts)
    .filter(([, amount]) => amount !== 0)
    .map(([resource, amount]) => ({
      labels: labelsText({ ...labels, resource, unit: unitOf(resource) }),
      value: resource === 'cpu' ? amount / 1000 : amount,
    }))
}

function unitOf(resource: string): string {
  if (resource === 'cpu') return 'cores'
  if (['memory', 'storage', 'ephemeral-storage'].includes(resource) || resource.startsWith('hugepages-')) return 'bytes'
  return resource.startsWith('attachable-volumes-') ? 'integer' : ''
}
