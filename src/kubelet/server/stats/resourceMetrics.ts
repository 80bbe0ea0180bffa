/** /metrics/resource (L3, pure): the source of metrics.k8s.io. Upstream: kubelet/metrics/collectors/resource_metrics.go (v1.36). */
import type { MetricFamily } from '#base/metricFamily'
import { type LabelledFamily, type Labels, metricFamilies } from './labelledFamilies.ts'
import type { GroupUsage, NodeUsage } from './usage.ts'

interface Measured {
  readonly labels: Labels
  readonly usage: GroupUsage
  readonly startedAtMs?: number | undefined
}

interface Level {
  readonly of: 'container' | 'pod' | 'node'
  readonly measured: readonly Measured[]
}

const seconds = (ns: number) => ns / 1e9

function cpu({ of, measured }: Level): LabelledFamily {
  return {
    name: `${of}_cpu_usage_seconds_total`,
    type: 'counter',
    help: `[STABLE] CPU time that the ${of} has used, in seconds`,
    samples: measured.map(({ labels, usage }) => ({ labels, value: seconds(usage.cpuNs), atMs: usage.atMs })),
  }
}

function memory({ of, measured }: Level): LabelledFamily {
  return {
    name: `${of}_memory_working_set_bytes`,
    type: 'gauge',
    help: `[STABLE] Memory of the ${of} that cannot be taken back at once, in bytes`,
    samples: measured.map(({ labels, usage }) => ({ labels, value: usage.memory.workingSetBytes, atMs: usage.atMs })),
  }
}

function swap({ of, measured }: Level): LabelledFamily {
  return {
    name: `${of}_swap_usage_bytes`,
    type: 'gauge',
    help: `[ALPHA] Swap of the ${of}, in bytes`,
    samples: measured.map(({ labels, usage }) => ({ labels, value: usage.memory.swapBytes, atMs: usage.atMs })),
  }
}

function started({ measured }: Level): LabelledFamily {
  return {
    name: 'container_start_time_seconds',
    type: 'gauge',
    help: '[STABLE] When the container was started, in seconds since 1970',
    samples: measured.flatMap(({ labels, startedAtMs }) => (startedAtMs === undefined ? [] : [{ labels, value: startedAtMs / 1000 }])),
  }
}

export function resourceFamilies({ node, pods }: NodeUsage): MetricFamily[] {
  const labelled = pods.map((usage) => ({ usage, labels: { namespace: usage.pod.metadata.namespace ?? '', pod: usage.pod.metadata.name ?? '' } }))
  const containers: Level = {
    of: 'container',
    measured: labelled.flatMap(({ usage, labels }) =>
      usage.containers.map((container) => ({ labels: { container: container.container, ...labels }, usage: container, startedAtMs: container.startedAtMs })),
    ),
  }
  const ofPods: Level = { of: 'pod', measured: labelled.map(({ usage, labels }) => ({ labels, usage: usage.group })) }
  const ofNode: Level = { of: 'node', measured: [{ labels: {}, usage: node }] }
  return metricFamilies([
    cpu(containers),
    memory(containers),
    started(containers),
    swap(containers),
    {
      name: 'container_swap_limit_bytes',
      type: 'gauge',
      help: '[ALPHA] How much a container may have in swap, in bytes',
      samples: containers.measured.map(({ labels, usage }) => ({ labels, value: usage.memory.swapLimitBytes, atMs: usage.atMs })),
    },
    cpu(ofNode),
    memory(ofNode),
    swap(ofNode),
    cpu(ofPods),
    memory(ofPods),
    swap(ofPods),
    {
      name: 'resource_scrape_error',
      type: 'gauge',
      help: '[STABLE] 1 when the figures of containers could not be had, else 0',
      samples: [{ value: 0 }],
    },
  ])
}
