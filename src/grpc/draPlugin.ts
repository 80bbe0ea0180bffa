/**
 * A connection to one DRA driver of a node (L1): dra v1 or v1beta1, and the health of its devices where it tells.
 * Upstream: kubelet/cm/dra/plugin/dra_plugin.go (v1.36).
 */
import { draHealthProto, draProtos } from './proto/dra.ts'
import { connectUnixService } from './unixService.ts'

export interface DraClaim {
  readonly namespace: string
  readonly uid: string
  readonly name: string
}

export interface DraDevice {
  readonly requestNames: readonly string[]
  readonly poolName: string
  readonly deviceName: string
  readonly cdiDeviceIds: readonly string[]
  /** Empty without one. */
  readonly shareId: string
}

export interface DraDeviceHealth {
  readonly device: { readonly poolName: string; readonly deviceName: string } | null
  readonly health: 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY'
  /** Seconds since the epoch. */
  readonly lastUpdatedTime: number
  readonly healthCheckTimeoutSeconds: number
  readonly message: string
}

/** Claim's uid → what became of it; `error` is empty when all went well. */
type Results<T> = Readonly<Record<string, T & { readonly error: string }>>

export interface DraPluginClient {
  prepare(claims: readonly DraClaim[]): Promise<Results<{ readonly devices: readonly DraDevice[] }>>
  unprepare(claims: readonly DraClaim[]): Promise<Results<object>>
  /** Fails with Unimplemented on drivers that do not tell. */
  health(signal: AbortSignal): AsyncIterable<{ readonly devices: readonly DraDeviceHealth[] }>
  close(): void
}

export type DraVersion = keyof typeof draProtos

const callTimeoutMs = 45_000

export function connectDraPlugin(socket: string, version: DraVersion): DraPluginClient {
  const target = `unix:${socket}`
  const plugin = connectUnixService(draProtos[version], `k8s.io.kubelet.pkg.apis.dra.${version}.DRAPlugin`, target)
  const health = connectUnixService(draHealthProto, 'v1alpha1.DRAResourceHealth', target)
  return {
    prepare: async (claims) => (await plugin.call<{ claims: Results<{ devices: DraDevice[] }> }>('NodePrepareResources', { claims }, callTimeoutMs)).claims,
    unprepare: async (claims) => (await plugin.call<{ claims: Results<object> }>('NodeUnprepareResources', { claims }, callTimeoutMs)).claims,
    health: (signal) => health.stream('NodeWatchResources', {}, signal),
    close: () => {
      plugin.close()
      health.close()
    },
  }
}
