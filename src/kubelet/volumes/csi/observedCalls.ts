/** Calls of CSI drivers' node services as the kubelet counts them, and records them for people (L3). Upstream: pkg/volume/csi/csi_metrics.go MetricsManager (v1.36). */
import type { Clock } from '#base/clock'
import { GrpcError } from '#grpc/grpcError'
import type { UnixService } from '#grpc/unixService'
import type { CallLog } from '../../core/callLog.ts'
import type { KubeletContext } from '../../core/context.ts'

export type NodeService = Pick<UnixService, 'call'>

export function observedCalls({
  clock,
  calls,
  metrics,
}: Pick<KubeletContext, 'clock' | 'calls' | 'metrics'>): (driver: string, node: NodeService) => NodeService {
  const seconds = metrics.histogram({
    name: 'csi_operations_seconds',
    help: 'How long a call to a CSI driver took, in seconds.',
    labels: ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
  })
  return (driver, node) =>
    measured(calls ? recorded(node, calls) : node, clock, (code, method, took) =>
      seconds.observe(took, { driver_name: driver, method_name: `/csi.v1.Node/${method}`, grpc_status_code: code, migrated: 'false' }),
    )
}

/** @param observe gets each call's code in Go's words and how many seconds it took */
function measured(node: NodeService, clock: Clock, observe: (code: string, method: string, seconds: number) => void): NodeService {
  return {
    call: async (method, request, ...options) => {
      const beganMs = clock.monotonicMs()
      const end = (code: string) => observe(code, method, (clock.monotonicMs() - beganMs) / 1000)
      try {
        const answer = await node.call<never>(method, request, ...options)
        end('OK')
        return answer
      } catch (error) {
        end(error instanceof GrpcError ? error.grpcStatus : 'unknown-non-grpc')
        throw error
      }
    },
  }
}

interface VolumeCall {
  readonly volumeId?: string
  readonly targetPath?: string
  readonly volumePath?: string
}

/** With the pod in whose directory the volume is. Statistics are asked for all the time, and not recorded. */
function recorded(node: NodeService, calls: CallLog): NodeService {
  return {
    call: (method, request, ...options) => {
      const { volumeId: volume, targetPath, volumePath } = request as VolumeCall
      const call = () => node.call<never>(method, request, ...options)
      if (volume === undefined || method === 'NodeGetVolumeStats') return call()
      const podUid = /\/pods\/([^/]+)\/|\/publish\/[^/]+\/([^/]+)$/.exec(targetPath ?? volumePath ?? '')
      return calls.record({ api: 'CSI', method, volume, podUid: podUid?.[1] ?? podUid?.[2], request }, call)
    },
  }
}
