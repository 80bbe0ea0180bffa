/**
 * What the binder can do itself for which kind of volume (L3, pure), and the words for what it cannot: everything else is for drivers outside.
 * Upstream: pkg/volume/plugins.go, cmd/kube-controller-manager/app/plugins.go ProbeProvisionableRecyclableVolumePlugins (v1.36).
 */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { driverInsteadOf } from '../shared/csiMigration.ts'

export const hostPathPlugin = 'kubernetes.io/host-path'
const knownPlugins: ReadonlySet<string> = new Set([hostPathPlugin, 'kubernetes.io/nfs', 'kubernetes.io/local-volume', 'kubernetes.io/csi'])

export type Provisioner =
  | { readonly kind: 'external'; readonly name: string }
  | { readonly kind: 'hostPath' }
  | { readonly kind: 'none'; readonly problem: string }

export function provisionerOf(name: string): Provisioner {
  const driver = driverInsteadOf(name)
  if (driver !== undefined) return { kind: 'external', name: driver }
  if (name === hostPathPlugin) return { kind: 'hostPath' }
  if (!name.startsWith('kubernetes.io/')) return { kind: 'external', name }
  return { kind: 'none', problem: knownPlugins.has(name) ? 'no provisionable volume plugin matched' : `no volume plugin matched name: ${name}` }
}

export type Deleter = { readonly kind: 'external' } | { readonly kind: 'hostPath'; readonly path: string } | { readonly kind: 'none'; readonly problem: string }

/** The plugin or driver that deletes the volume's storage: its provisioner, or the plugin of its source. */
export function deleterOf({ metadata, spec }: Frozen<PersistentVolume>): Deleter {
  const madeBy = metadata.annotations?.[volumeAnnotations.provisionedBy]
  const path = spec.hostPath?.path
  if (madeBy) {
    if (!madeBy.startsWith('kubernetes.io/')) return { kind: 'external' }
    if (madeBy === hostPathPlugin && path !== undefined) return { kind: 'hostPath', path }
    return { kind: 'none', problem: knownPlugins.has(madeBy) ? 'no deletable volume plugin matched' : `no volume plugin matched name: ${madeBy}` }
  }
  if (metadata.annotations?.[volumeAnnotations.migratedTo] !== undefined || spec.csi) return { kind: 'external' }
  if (path !== undefined) return { kind: 'hostPath', path }
  const problem = spec.nfs || spec.local ? 'no deletable volume plugin matched' : 'no volume plugin matched'
  return { kind: 'none', problem: `error getting deleter volume plugin for volume "${metadata.name}": ${problem}` }
}

/** The plugin as metrics name it; a CSI volume with its driver. */
export function pluginNameOf({ spec }: Frozen<PersistentVolume>): string {
  if (spec.csi) return `kubernetes.io/csi:${spec.csi.driver}`
  if (spec.hostPath) return hostPathPlugin
  if (spec.nfs) return 'kubernetes.io/nfs'
  return spec.local ? 'kubernetes.io/local-volume' : 'N/A'
}
