/**
 * What a new volume is filled from (L3): the volume of another claim, or a snapshot. A finalizer keeps the source until the volume exists.
 * Upstream: external-provisioner, getVolumeContentSource.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { quantityValue } from '#api/machinery/quantity'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import type { Client } from '#client/client'
import { isProtected } from '#controllers/shared/protection'
import type { VolumeContentSource } from '../../server/csiTypes.ts'
import type { CsiDriverFacts } from '../driver.ts'
import { setFinalizer } from '../finalizers.ts'
import { snapshotGroup, type VolumeSnapshot, type VolumeSnapshotContent, volumeSnapshotContents, volumeSnapshots } from '../snapshotter/snapshotTypes.ts'
import { dataSourceOf } from './createRequest.ts'
import { ProvisioningError } from './provisioningError.ts'

type Claim = Frozen<PersistentVolumeClaim>

export const cloneFinalizer = 'provisioner.storage.kubernetes.io/cloning-protection'
export const snapshotFinalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection'
const modeAnnotation = 'snapshot.storage.kubernetes.io/allow-volume-mode-change'

const sizeOf = ({ spec }: Claim) => quantityValue(spec.resources?.requests?.storage ?? '0')
const modeOf = (mode: string | undefined) => mode ?? 'Filesystem'
const invalidClaim = 'claim in dataSource not bound or invalid'

/** @throws ProvisioningError */
export async function contentSourceOf(
  { client, driver }: { readonly client: Client; readonly driver: CsiDriverFacts },
  claim: Claim,
  storageClass: Frozen<StorageClass>,
  signal: AbortSignal,
): Promise<VolumeContentSource | undefined> {
  const source = dataSourceOf(claim)
  if (!source) return undefined
  checkSource(claim, driver)
  try {
    if (source.kind === 'VolumeSnapshot') return { snapshot: { snapshotId: await snapshotIdOf(client, claim, source.name, storageClass, signal) } }
    return { volume: { volumeId: await volumeIdOf(client, claim, source.name, storageClass, signal) } }
  } catch (error) {
    signal.throwIfAborted()
    throw new ProvisioningError('unchanged', `error getting handle for DataSource Type ${source.kind} by Name ${source.name}: ${messageOf(error)}`, error)
  }
}

function checkSource(claim: Claim, { controller }: CsiDriverFacts): void {
  const fail = (problem: string) => {
    throw new ProvisioningError('finished', problem)
  }
  const { dataSource, dataSourceRef } = claim.spec
  const { kind = '', apiGroup = '', name = '' } = dataSource ?? dataSourceRef ?? {}
  const { namespace } = claim.metadata
  const isElsewhere = !dataSource && (dataSourceRef?.namespace || namespace) !== namespace
  if (isElsewhere) fail('dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled')
  if (name === '') fail(`the PVC source not found for PVC ${claim.metadata.name}`)
  const isSnapshot = kind === 'VolumeSnapshot'
  if (isSnapshot && apiGroup !== snapshotGroup) fail(`the PVC source does not belong to the right APIGroup. Expected ${snapshotGroup}, Got ${apiGroup}`)
  const [what, call] = isSnapshot ? ['snapshot restore', 'CREATE_DELETE_SNAPSHOT'] : ['clone operations', 'CLONE_VOLUME']
  if (!controller.has(call)) fail(`CSI driver does not support ${what}: controller ${call} capability is not reported`)
}

async function volumeIdOf(client: Client, claim: Claim, name: string, { provisioner }: Frozen<StorageClass>, signal: AbortSignal): Promise<string> {
  const { namespace = '' } = claim.metadata
  const source = await client.of(persistentVolumeClaims).get({ namespace, name }, { signal })
  const { metadata, spec, status } = source
  if (status.phase !== 'Bound') throw new Error(`the PVC DataSource ${name} must have a status of Bound.  Got ${status.phase}`)
  // A clone that the driver may be making already is not given up: upstream gives it up, and then source and clone wait for each other.
  if (metadata.deletionTimestamp && !isProtected(source, cloneFinalizer)) throw new Error(`the PVC DataSource ${name} is currently being deleted`)
  if (spec.storageClassName === undefined) throw new Error(`the source PVC (${name}) storageclass cannot be empty`)
  if (sizeOf(claim) < sizeOf(source)) {
    const sizes = `requested ${sizeOf(claim)} but source is ${sizeOf(source)}`
    throw new Error(`error, new PVC request must be greater than or equal in size to the specified PVC data source, ${sizes}`)
  }
  const volume = await client.of(persistentVolumes).get({ name: spec.volumeName ?? '' }, { signal })
  checkVolume(volume, source, claim, provisioner)
  await setFinalizer(client.of(persistentVolumeClaims), source, cloneFinalizer, true, signal)
  return volume.spec.csi?.volumeHandle ?? ''
}

function checkVolume({ spec, status }: Frozen<PersistentVolume>, { metadata }: Claim, claim: Claim, provisioner: string): void {
  const { claimRef } = spec
  const isOfSource = claimRef?.uid === metadata.uid && claimRef?.namespace === metadata.namespace && claimRef?.name === metadata.name
  if (spec.csi?.driver !== provisioner || !isOfSource || status.phase !== 'Bound') throw new Error(invalidClaim)
  const [has, wants] = [modeOf(spec.volumeMode), modeOf(claim.spec.volumeMode)]
  if (has === wants) return
  throw new Error(`the source PVC and destination PVCs must have the same volume mode for cloning.  Source is ${has}, but new PVC requested ${wants}`)
}

async function snapshotIdOf(client: Client, claim: Claim, name: string, storageClass: Frozen<StorageClass>, signal: AbortSignal): Promise<string> {
  const { namespace = '' } = claim.metadata
  const snapshot = await client.of(volumeSnapshots).get({ namespace, name }, { signal })
  // A volume that the driver may be creating already is not given up.
  if (snapshot.metadata.deletionTimestamp && !isProtected(snapshot, snapshotFinalizer)) throw new Error(`snapshot ${name} is being deleted`)
  const contentName = snapshot.status?.boundVolumeSnapshotContentName
  if (contentName === undefined) throw new Error(`snapshot ${name} not bound`)
  const content = await client.of(volumeSnapshotContents).get({ name: contentName }, { signal })
  checkSnapshot(snapshot, content, claim, storageClass)
  if (!snapshot.metadata.deletionTimestamp) await setFinalizer(client.of(volumeSnapshots), snapshot, snapshotFinalizer, true, signal)
  return content.status?.snapshotHandle ?? ''
}

function checkSnapshot(
  snapshot: Frozen<VolumeSnapshot>,
  content: Frozen<VolumeSnapshotContent>,
  claim: Claim,
  { metadata, provisioner }: Frozen<StorageClass>,
) {
  const { name, namespace, uid } = snapshot.metadata
  const { volumeSnapshotRef: reference, driver } = content.spec
  const about = `snapshotcontent ${content.metadata.name} for snapshot ${name}`
  if (reference.uid !== uid || reference.namespace !== namespace || reference.name !== name) throw new Error(`${about} is bound to a different snapshot`)
  if (driver !== provisioner) throw new Error(`${about} is not handled by CSI driver of StorageClass ${metadata.name}`)
  if (!snapshot.status?.readyToUse) throw new Error(`snapshot ${name} is not Ready`)
  if (!content.status?.snapshotHandle) throw new Error(`snapshot handle ${name} is not available`)
  const least = quantityValue(snapshot.status.restoreSize ?? '0')
  if (sizeOf(claim) < least) throw new Error(`requested volume size ${sizeOf(claim)} is less than the size ${least} for the source snapshot ${name}`)
  checkMode(content, claim)
}

/** A file system that a user wrote into a raw volume could attack the kernel that mounts it. */
function checkMode({ metadata, spec }: Frozen<VolumeSnapshotContent>, claim: Claim): void {
  if (spec.sourceVolumeMode === undefined || claim.spec.volumeMode === undefined || spec.sourceVolumeMode === claim.spec.volumeMode) return
  const allowed = metadata.annotations?.[modeAnnotation]
  if (allowed === 'true') return
  const { namespace, name } = claim.metadata
  const refusal = `requested volume ${namespace}/${name} modifies the mode of the source volume but does not have permission to do so. ${modeAnnotation}`
  throw new Error(`${refusal} ${allowed === undefined ? 'annotation is not present' : 'is set to false'} on snapshotcontent ${metadata.name}`)
}

/** Frees the snapshot that a claim was filled from. */
export async function releaseSource(client: Client, claim: Claim, signal: AbortSignal): Promise<void> {
  const source = dataSourceOf(claim)
  if (source?.kind === 'VolumeSnapshot') await releaseSnapshot(client, { namespace: claim.metadata.namespace, name: source.name }, signal)
}

/** A snapshot whose finalizer remains is freed later. */
export async function releaseSnapshot(
  client: Client,
  { namespace = '', name }: { namespace?: string | undefined; name: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    const snapshot = await client.of(volumeSnapshots).get({ namespace, name }, { signal })
    await setFinalizer(client.of(volumeSnapshots), snapshot, snapshotFinalizer, false, signal)
  } catch (error) {
    if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict') && !isStatus(error, 'Forbidden')) throw error
  }
}
