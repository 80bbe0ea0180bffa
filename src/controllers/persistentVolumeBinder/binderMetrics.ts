/** Metrics of volumes and claims (L3). Upstream: pkg/controller/volume/persistentvolume/metrics (v1.36). */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import { pluginNameOf } from './volumePlugins.ts'

type Operation = 'provision' | 'delete'

export interface BinderMetrics {
  volume(before: Frozen<PersistentVolume> | undefined, after: Frozen<PersistentVolume> | undefined): void
  claim(before: Frozen<PersistentVolumeClaim> | undefined, after: Frozen<PersistentVolumeClaim> | undefined): void
  assignedClass(succeeded: boolean): void
  /** An operation on what has this key has begun, unless it had before. */
  begins(key: string, plugin: string, operation: Operation): void
  /** Counts a failed operation that is tried again. */
  failed(key: string): void
  /** It is over: how long it took. */
  succeeded(key: string): void
  forget(key: string): void
}

const seconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]

export function createBinderMetrics(metrics: Metrics, clock: Clock): BinderMetrics {
  const gauge = (name: string, help: string, labels: readonly string[]) =>
    metrics.gauge({ name: `pv_collector_${name}`, help: `Gauge measuring ${help}`, labels })
  const claimLabels = ['namespace', 'storage_class', 'volume_attributes_class']
  const operationLabels = ['plugin_name', 'operation_name']
  const totalVolumes = gauge('total_pv_count', 'total number of persistent volumes', ['plugin_name', 'volume_mode'])
  const boundVolumes = gauge('bound_pv_count', 'number of persistent volume currently bound', ['storage_class'])
  const unboundVolumes = gauge('unbound_pv_count', 'number of persistent volume currently unbound', ['storage_class'])
  const boundClaims = gauge('bound_pvc_count', 'number of persistent volume claim currently bound', claimLabels)
  const unboundClaims = gauge('unbound_pvc_count', 'number of persistent volume claim currently unbound', claimLabels)
  const errors = metrics.counter({ name: 'volume_operation_total_errors', help: 'How many operations on volumes have failed.', labels: operationLabels })
  const times = metrics.histogram({
    name: 'volume_operation_total_seconds',
    help: 'How long an operation on a volume took from its cause to its end, in seconds.',
    labels: operationLabels,
    buckets: seconds,
  })
  const assigned = metrics.counter({
    name: 'retroactive_storageclass_total',
    help: 'How many claims were to get the default class afterwards.',
  })
  const assignErrors = metrics.counter({
    name: 'retroactive_storageclass_errors_total',
    help: 'How many claims could not get the default class afterwards.',
  })
  const begun = new Map<string, { readonly plugin: string; readonly operation: Operation; readonly atMs: number }>()

  const countVolume = (volume: Frozen<PersistentVolume>, change: 'inc' | 'dec') => {
    totalVolumes[change]({ plugin_name: pluginNameOf(volume), volume_mode: volume.spec.volumeMode ?? 'Filesystem' })
    const phase = volume.status?.phase === 'Bound' ? boundVolumes : unboundVolumes
    phase[change]({ storage_class: volume.spec.storageClassName ?? '' })
  }
  const countClaim = ({ metadata, spec, status }: Frozen<PersistentVolumeClaim>, change: 'inc' | 'dec') => {
    const phase = status.phase === 'Bound' ? boundClaims : unboundClaims
    const { storageClassName = '', volumeAttributesClassName = '' } = spec
    phase[change]({ namespace: metadata.namespace ?? '', storage_class: storageClassName, volume_attributes_class: volumeAttributesClassName })
  }
  return {
    volume(before, after) {
      if (before) countVolume(before, 'dec')
      if (after) countVolume(after, 'inc')
    },
    claim(before, after) {
      if (before) countClaim(before, 'dec')
      if (after) countClaim(after, 'inc')
    },
    assignedClass(succeeded) {
      assigned.inc()
      if (!succeeded) assignErrors.inc()
    },
    begins(key, plugin, operation) {
      if (!begun.has(key)) begun.set(key, { plugin, operation, atMs: clock.monotonicMs() })
    },
    failed(key) {
      const one = begun.get(key)
      if (one) errors.inc({ plugin_name: one.plugin, operation_name: one.operation })
    },
    succeeded(key) {
      const one = begun.get(key)
      if (!one) return
      times.observe((clock.monotonicMs() - one.atMs) / 1000, { plugin_name: one.plugin, operation_name: one.operation })
      begun.delete(key)
    },
    forget: (key) => void begun.delete(key),
  }
}
