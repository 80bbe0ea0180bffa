/** A volume's access modes, volume mode and mount options as CSI has them (L3, pure). Upstream: kubernetes-csi/csi-lib-utils, accessmodes. */
import type { AccessMode, VolumeCapability } from '../server/csiTypes.ts'

export interface CapabilityFacts {
  readonly volumeMode?: string | undefined
  readonly fsType: string
  readonly mountOptions: readonly string[]
  /** The driver reports SINGLE_NODE_MULTI_WRITER. */
  readonly knowsSingleNodeModes: boolean
}

/** @throws Error for modes that CSI cannot express together */
export function volumeCapabilityOf(modes: readonly string[], { volumeMode, fsType, mountOptions, knowsSingleNodeModes }: CapabilityFacts): VolumeCapability {
  const accessMode = { mode: accessModeOf(new Set(modes), knowsSingleNodeModes) }
  if (volumeMode === 'Block') return { block: {}, accessMode }
  return { mount: { fsType, mountFlags: mountOptions }, accessMode }
}

function accessModeOf(modes: ReadonlySet<string>, knowsSingleNodeModes: boolean): AccessMode {
  if (modes.has('ReadWriteOncePod')) {
    if (modes.size > 1) throw new Error('Kubernetes does not support use of ReadWriteOncePod with other access modes on the same PersistentVolume')
    return knowsSingleNodeModes ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER'
  }
  if (modes.has('ReadWriteMany')) return 'MULTI_NODE_MULTI_WRITER'
  if (modes.has('ReadOnlyMany') && modes.has('ReadWriteOnce'))
    throw new Error('CSI does not support ReadOnlyMany and ReadWriteOnce on the same PersistentVolume')
  if (modes.has('ReadOnlyMany')) return 'MULTI_NODE_READER_ONLY'
  if (modes.has('ReadWriteOnce')) return knowsSingleNodeModes ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER'
  throw new Error(`unsupported AccessMode combination: [${[...modes].join(' ')}]`)
}
