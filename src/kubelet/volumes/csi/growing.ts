/** Has a CSI driver grow a volume on the node (L3). Upstream: pkg/volume/csi/expander.go (v1.36). */
import { messageOf } from '#base/messageOf'
import { GrpcError, type StatusName } from '#grpc/grpcError'
import { quantity } from '../../core/quantities.ts'
import { ExpansionRefusal, type RefusalKind } from '../expansion.ts'
import type { VolumeContext, VolumeRequest } from '../volumePlugin.ts'
import { credentials } from './cluster.ts'
import { isFinal } from './drivers.ts'
import { capabilityOf, csiVolumeOf } from './source.ts'

/** Codes that say why; every other final one is a failure. */
const kinds: Readonly<Partial<Record<StatusName, RefusalKind>>> = {
  FAILED_PRECONDITION: 'inUse',
  INVALID_ARGUMENT: 'infeasible',
  OUT_OF_RANGE: 'infeasible',
  NOT_FOUND: 'infeasible',
}

export async function growVolume(volumes: VolumeContext, request: VolumeRequest, path: string, newSize: string): Promise<void> {
  const { csi, context } = volumes
  const volume = csiVolumeOf(request.spec, request.pod)
  const operation = csi.operation(volume.driver)
  if (!(await operation.supports('EXPAND_VOLUME'))) throw new ExpansionRefusal('unsupported', `NodeExpand is not supported by the CSI driver ${volume.driver}`)
  const isStaged = await operation.supports('STAGE_UNSTAGE_VOLUME')
  const call = {
    volumeId: volume.handle,
    volumePath: path,
    ...(isStaged ? { stagingTargetPath: request.stagingPath } : {}),
    capacityRange: { requiredBytes: Math.ceil(quantity(newSize)) },
    volumeCapability: await capabilityOf(volume, operation),
    secrets: await credentials(context.client, 'NodeExpandSecretRef', volume.expandSecret),
  }
  await operation.call('NodeExpandVolume', call).catch((error: unknown) => {
    const message = `Expander.NodeExpand failed to expand the volume : ${messageOf(error)}`
    if (error instanceof GrpcError && isFinal(error)) throw new ExpansionRefusal(kinds[error.code] ?? 'failed', message, error)
    throw new Error(message, { cause: error })
  })
}
