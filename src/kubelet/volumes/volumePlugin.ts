/** What a volume type is (L3): how it recognises a volume, sets it up below the pod's directory and takes it down again. */
import type { Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletContext } from '../context.ts'
import type { KubeletHost } from '../host.ts'
import type { FrozenPod } from '../pods/containers.ts'
import type { TokenManager } from './tokenManager.ts'

export type FrozenVolume = Frozen<Volume>

export interface VolumeContext {
  readonly context: KubeletContext
  readonly host: KubeletHost
  readonly tokens: TokenManager
}

export interface VolumeRequest {
  readonly pod: FrozenPod
  readonly volume: FrozenVolume
  /** The volume's own directory, as a path of the node. */
  readonly directory: string
}

export interface VolumePlugin {
  /** Upstream's plugin name, which is also the directory's: 'kubernetes.io/empty-dir'. */
  readonly name: string
  supports(volume: FrozenVolume): boolean
  /** Idempotent. Returns the node's path that containers mount: the directory, or somewhere else. */
  setUp(volumes: VolumeContext, request: VolumeRequest): Promise<string>
  /** True when the content may change while the pod runs, so that setUp is called again. */
  readonly refreshes: boolean
  /** Takes down what setUp did at `directory`. The directory itself is removed by the caller. */
  tearDown?(volumes: VolumeContext, directory: string): Promise<void>
}

/** The pod's fsGroup, if it has one. */
export function fsGroupOf(pod: FrozenPod): number | undefined {
  return pod.spec.securityContext?.fsGroup
}
