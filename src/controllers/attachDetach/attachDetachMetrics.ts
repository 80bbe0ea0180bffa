/** Metrics of attached volumes (L3). Upstream: pkg/controller/volume/attachdetach/metrics (v1.36). */
import type { Labels, Metrics } from '#base/metrics'
import { inTreePluginOf, partsOf, type Wanted } from './attachable.ts'
import type { Detachment } from './nodePlan.ts'

export interface AttachDetachMetrics {
  /** How things are on one node now. */
  observe(node: string, wanted: ReadonlyMap<string, Wanted>, attached: Iterable<string>): void
  forced(reason: NonNullable<Detachment['forced']>): void
}

export function createAttachDetachMetrics(metrics: Metrics): AttachDetachMetrics {
  const total = metrics.gauge({
    name: 'attachdetach_controller_total_volumes',
    help: 'How many volumes the controller knows of.',
    labels: ['plugin_name', 'state'],
  })
  const inUse = metrics.gauge({ name: 'storage_count_attachable_volumes_in_use', help: 'How many volumes are in use.', labels: ['node', 'volume_plugin'] })
  const forced = metrics.counter({
    name: 'attachdetach_controller_forced_detaches',
    help: 'How often a volume was detached by force.',
    labels: ['reason'],
  })
  const known = new Map<string, readonly (readonly [gauge: typeof total, labels: Labels])[]>()
  const plugin = (name: string) => inTreePluginOf(name) ?? `kubernetes.io/csi:${partsOf(name)?.driver ?? ''}`
  return {
    observe(node, wanted, attached) {
      for (const [gauge, labels] of known.get(node) ?? []) gauge.dec(labels)
      const now = [
        ...[...wanted].flatMap(([name, { pods }]) => [
          [total, { plugin_name: plugin(name), state: 'desired_state_of_world' }] as const,
          ...pods.map(() => [inUse, { node, volume_plugin: plugin(name) }] as const),
        ]),
        ...[...attached].map((name) => [total, { plugin_name: plugin(name), state: 'actual_state_of_world' }] as const),
      ]
      for (const [gauge, labels] of now) gauge.inc(labels)
      if (now.length > 0) known.set(node, now)
      else known.delete(node)
    },
    forced: (reason) => forced.inc({ reason }),
  }
}
