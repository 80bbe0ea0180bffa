/**
 * Publishes a CSI volume to a pod (L3): with what the driver wants to know of the pod, and with the pod's fsGroup where the driver leaves that to the kubelet.
 * Upstream: pkg/volume/csi/csi_mounter.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import { makeDirectory } from '#host/files'
import type { FrozenPod } from '../../core/containers.ts'
import { setVolumeOwnership, watchOwnership } from '../ownership.ts'
import { isMountPoint } from '../podMounts.ts'
import { fsGroupOf, type TearDownRequest, type VolumeContext, type VolumeRequest } from '../volumePlugin.ts'
import { credentials, type FrozenDriver, findDriver, publishContext } from './cluster.ts'
import { csiText } from './csiText.ts'
import { type DriverOperation, isFinal } from './drivers.ts'
import { attachmentName, type CsiVolume, capabilityOf, csiVolumeOf, type TextMap } from './source.ts'
import { operationOn } from './staging.ts'
import { dataFile, loadData, removePlace, saveData } from './volumeData.ts'

/** The driver's mount in the volume's directory. */
const mountIn = (directory: string) => `${directory}/mount`

/** Idempotent. Returns the node's path of the mount. @throws Error with upstream's message; after a final error of the driver nothing is published */
export async function publishFilesystem(volumes: VolumeContext, request: VolumeRequest): Promise<string> {
  const { context, host } = volumes
  const { pod, spec, directory, refresh } = request
  const volume = csiVolumeOf(spec, pod)
  const operation = operationOn(volumes, volume.driver, 'mounter.SetUpAt failed to get CSI client')
  const driver = await findDriver(context.client, volume.driver)
  checkLifecycle(volume, driver)
  const group = fsGroupOf(pod)
  const isDelegated = await operation.supports('VOLUME_MOUNT_GROUP')
  const target = mountIn(directory)
  const call = await publishRequest(volumes, { volume, request, driver, operation, target, group: isDelegated ? group : undefined })
  const isMounted = await isMountPoint(host, target)
  await makeDirectory(host.path(directory), 0o750)
  await saveData(host, `${directory}/${dataFile}`, publishedData(volume, context.config.nodeName))
  try {
    await operation.call('NodePublishVolume', call)
  } catch (error) {
    // A pod that runs keeps the content that it has.
    if (isFinal(error) && !refresh) await removePlace(host, target)
    throw error
  }
  if (!isDelegated && isForGroup(volume, driver)) await giveToGroup(volumes, pod, target, isMounted).catch(failedFor(volume))
  return target
}

export function publishedData({ name, handle, driver, lifecycle }: CsiVolume, nodeName: string) {
  const attachmentID = attachmentName(handle, driver, nodeName)
  return { specVolID: name, volumeHandle: handle, driverName: driver, nodeName, volumeLifecycleMode: lifecycle, attachmentID }
}

const failedFor =
  ({ handle }: CsiVolume) =>
  (error: unknown) =>
    Promise.reject(new Error(`applyFSGroup failed for vol ${handle}: ${messageOf(error)}`, { cause: error }))

type Requests = NonNullable<FrozenDriver['spec']['tokenRequests']>
/** The API server's. */
const defaultTokenSeconds = 3600

interface Publication {
  readonly volume: CsiVolume
  readonly request: VolumeRequest
  readonly driver: FrozenDriver | undefined
  readonly operation: DriverOperation
  readonly target: string
  /** For drivers that give volumes to the group themselves. */
  readonly group: number | undefined
}

/** The same for block volumes. */
export async function publishRequest(volumes: VolumeContext, publication: Publication): Promise<object> {
  const { volume, request, driver, operation, target, group } = publication
  const { client, config } = volumes.context
  const { tokenRequests = [], serviceAccountTokenInSecrets = false, podInfoOnMount = false } = driver?.spec ?? {}
  // Block volumes get no tokens.
  const tokens = volume.block ? {} : await tokenAttributes(volumes, request.pod, tokenRequests)
  const isStaged = volume.lifecycle === 'Persistent' && (await operation.supports('STAGE_UNSTAGE_VOLUME'))
  return {
    volumeId: volume.handle,
    publishContext: await publishContext(client, volume, config.nodeName),
    ...(isStaged ? { stagingTargetPath: request.stagingPath } : {}),
    targetPath: target,
    volumeCapability: await capabilityOf(volume, operation, group),
    readonly: volume.readOnly,
    secrets: { ...(await credentials(client, 'NodePublishSecretRef', volume.publishSecret)), ...(serviceAccountTokenInSecrets ? tokens : {}) },
    volumeContext: {
      ...volume.attributes,
      ...(podInfoOnMount ? podAttributes(request.pod, volume) : {}),
      ...(serviceAccountTokenInSecrets ? {} : tokens),
    },
  }
}

function podAttributes({ metadata, spec }: FrozenPod, { lifecycle }: CsiVolume): TextMap {
  return {
    'csi.storage.k8s.io/pod.name': metadata.name ?? '',
    'csi.storage.k8s.io/pod.namespace': metadata.namespace ?? '',
    'csi.storage.k8s.io/pod.uid': metadata.uid ?? '',
    'csi.storage.k8s.io/serviceAccount.name': spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': String(lifecycle === 'Ephemeral'),
  }
}

/** A token of the pod's service account for each audience that the driver asks for. */
async function tokenAttributes({ tokens }: VolumeContext, pod: FrozenPod, requests: Requests): Promise<TextMap> {
  if (requests.length === 0) return {}
  const entries = requests.map(async ({ audience, expirationSeconds = defaultTokenSeconds }) => {
    const { token, expirationTimestamp } = await tokens.token(pod, audience, expirationSeconds)
    return [audience, { token, expirationTimestamp }] as const
  })
  const failed = (error: unknown) => {
    throw new Error(csiText(`mounter.SetUpAt failed to get service accoount token attributes: ${messageOf(error)}`), { cause: error })
  }
  const byAudience = (await Promise.all(entries).catch(failed)).sort(([left], [right]) => (left < right ? -1 : 1))
  return { 'csi.storage.k8s.io/serviceAccount.tokens': JSON.stringify(Object.fromEntries(byAudience)) }
}

/** @throws Error when the driver has no volumes of this kind */
function checkLifecycle({ lifecycle, driver: name }: CsiVolume, driver: FrozenDriver | undefined): void {
  const modes: readonly string[] = driver?.spec.volumeLifecycleModes ?? ['Persistent']
  if (modes.includes(lifecycle)) return
  const known = driver ? `only supports [${modes.map((mode) => JSON.stringify(mode)).join(' ')}]` : 'no CSIDriver object'
  const reason = `volume mode "${lifecycle}" not supported by driver ${name} (${known})`
  throw new Error(csiText(`mounter.SetupAt failed to check volume lifecycle mode: ${reason}`))
}

/** Whether the kubelet gives the volume to the pod's group. */
function isForGroup({ lifecycle, readOnly, fsType, accessModes }: CsiVolume, driver: FrozenDriver | undefined): boolean {
  const policy = driver?.spec.fsGroupPolicy ?? 'ReadWriteOnceWithFSType'
  if (readOnly || policy === 'None') return false
  if (policy === 'File') return true
  const isForOneNode = lifecycle === 'Ephemeral' || accessModes?.some((mode) => mode === 'ReadWriteOnce' || mode === 'ReadWriteOncePod') === true
  return fsType !== '' && isForOneNode
}

async function giveToGroup({ context, host }: VolumeContext, pod: FrozenPod, target: string, wasMounted: boolean): Promise<void> {
  // The walk changes the root last, so that after a restart of the kubelet the root shows whether the earlier one was finished.
  const policy = wasMounted ? 'OnRootMismatch' : pod.spec.securityContext?.fsGroupChangePolicy
  const watch = watchOwnership(context, pod, target)
  try {
    await setVolumeOwnership(host.path(target), { fsGroup: fsGroupOf(pod), policy, onFile: watch.seen })
  } finally {
    watch.stop()
  }
}

export async function unpublishFilesystem(volumes: VolumeContext, { directory }: TearDownRequest): Promise<void> {
  const data = await loadData(volumes.host, `${directory}/${dataFile}`)
  if (!data) return
  const operation = operationOn(volumes, data.driverName, 'Unmounter.TearDownAt failed to get CSI client')
  volumes.csi.usages.forget(mountIn(directory))
  await unpublish(operation, data.volumeHandle, mountIn(directory), 'Unmounter.TearDownAt failed')
  await removePlace(volumes.host, mountIn(directory))
}

/** @param step what the message calls it */
export async function unpublish(operation: DriverOperation, volumeId: string, targetPath: string, step: string): Promise<void> {
  await operation.call('NodeUnpublishVolume', { volumeId, targetPath }).catch((error: unknown) => {
    throw new Error(csiText(`${step}: ${messageOf(error)}`), { cause: error })
  })
}
