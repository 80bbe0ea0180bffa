/** Options of the persistent volume binder (L3). Upstream: pkg/controller/volume/persistentvolume/config/types.go (v1.36). */
import type { Pod } from '#api/gen/types/core.v1'

export interface BinderOptions {
  readonly volumeBinding?: VolumeBindingOptions | undefined
  /** Directories of the machine on which the controllers run; absent: the binder neither creates nor deletes volumes of type hostPath. */
  readonly hostPaths?: HostPaths | undefined
}

export interface VolumeBindingOptions {
  /** Volumes and claims are reconciled this often, also without a change. Default 15 s. */
  readonly syncPeriodMs?: number | undefined
  /** Default true. */
  readonly dynamicProvisioning?: boolean | undefined
  /** Provisions volumes of type hostPath, for development on one machine. Default false. */
  readonly provisionHostPaths?: boolean | undefined
  readonly recycleHostPath?: RecyclerOptions | undefined
  readonly recycleNfs?: RecyclerOptions | undefined
}

/** The pod that empties a volume whose reclaim policy is Recycle. */
export interface RecyclerOptions {
  /** Least time-out. Default 60 for hostPath, 300 for NFS. */
  readonly minimumSeconds?: number | undefined
  /** Time-out for each Gi of the volume. Default 30. */
  readonly secondsPerGi?: number | undefined
  /** Its first volume is replaced by the volume to empty. */
  readonly template?: Pod | undefined
}

export interface HostPaths {
  make(path: string): Promise<void>
  /** Removes the directory with its content. */
  remove(path: string): Promise<void>
}
