/** The controller of the host path driver (L2): volumes, their copies and sizes, and the node that may use them. */
import { randomUUID } from 'node:crypto'
import {
  type CreateVolumeRequest,
  type CsiController,
  CsiError,
  type TextMap,
  type Topology,
  type Volume,
  type VolumeContentSource,
  type VolumeStatus,
} from '../server/csiTypes.ts'
import { type Contents, orRemove } from './content.ts'
import { accessTypeOf, changeVolume, pageOf, sizeIn, snapshotOf, volumeOf } from './lookup.ts'
import { type AccessType, type State, type StateFile, type StoredVolume, withEntry, withoutEntry } from './state.ts'

export interface HostPath {
  readonly file: StateFile
  readonly contents: Contents
  readonly nodeId: string
  /** Bytes of all volumes together; undefined: as much as the disk has. */
  readonly capacityBytes: number | undefined
  /** Milliseconds since 1970. */
  now(): number
}

export const topologyKey = 'topology.hostpath.csi.skiff.dev/node'

/** Values of mutable parameters that volumes may have. */
const mutable: Readonly<Record<string, readonly string[]>> = { profile: ['standard', 'throughput', 'latency'] }

export function createController(driver: HostPath): CsiController {
  const { contents, file, nodeId } = driver
  return {
    createVolume: async (request) => ({ volume: volumeMessage(driver, await createVolume(driver, request)) }),
    deleteVolume: ({ volumeId }) => deleteVolume(driver, volumeId),
    controllerPublishVolume: async ({ volumeId, nodeId: wanted, volumeCapability, readonly }) => {
      const { attached, accessType } = volumeOf(file.state, volumeId)
      if (wanted !== nodeId) throw new CsiError('NOT_FOUND', 'no such node')
      if (accessTypeOf([volumeCapability]) !== accessType) throw new CsiError('INVALID_ARGUMENT', `the volume is a ${accessType} volume`)
      const mode = volumeCapability.accessMode?.mode ?? 'UNKNOWN'
      if (attached && (attached.readonly !== readonly || attached.mode !== mode))
        throw new CsiError('ALREADY_EXISTS', 'the volume is published to the node in another way')
      if (!attached) await changeVolume(file, volumeId, (volume) => ({ ...volume, attached: { readonly, mode } }))
      return { publishContext: {} }
    },
    controllerUnpublishVolume: async ({ volumeId, nodeId: wanted }) => {
      if (wanted !== '' && wanted !== nodeId) return
      if (file.state.volumes.find(({ id }) => id === volumeId)?.attached) await changeVolume(file, volumeId, (volume) => ({ ...volume, attached: undefined }))
    },
    validateVolumeCapabilities: ({ volumeId, volumeCapabilities, volumeContext, parameters, mutableParameters }) => {
      const { accessType } = volumeOf(file.state, volumeId)
      if (volumeCapabilities.some((one) => accessTypeOf([one]) !== accessType)) return { message: `the volume is a ${accessType} volume` }
      return { confirmed: { volumeCapabilities, volumeContext, parameters, mutableParameters } }
    },
    listVolumes: async (page) => {
      const { entries, nextToken } = pageOf(file.state.volumes, page)
      return {
        entries: await Promise.all(entries.map(async (one) => ({ volume: volumeMessage(driver, one), status: await statusOf(driver, one) }))),
        nextToken,
      }
    },
    controllerGetVolume: async ({ volumeId }) => {
      const volume = volumeOf(file.state, volumeId)
      return { volume: volumeMessage(driver, volume), status: await statusOf(driver, volume) }
    },
    getCapacity: async ({ accessibleTopology }) => {
      const isHere = !accessibleTopology || isThisNode(driver, accessibleTopology)
      const free = isHere ? await freeBytes(driver) : 0
      return { availableCapacity: free, maximumVolumeSize: { value: free } }
    },
    controllerExpandVolume: async ({ volumeId, capacityRange }) => {
      const { accessType, capacityBytes: old } = volumeOf(file.state, volumeId)
      const capacityBytes = sizeIn(capacityRange, old)
      if (capacityBytes > old) await file.update((state) => reserve(driver, state, { ...volumeOf(state, volumeId), capacityBytes }))
      // Also without a change: a crash may have been between the two.
      await contents.grow(volumeId, accessType, capacityBytes)
      return { capacityBytes, nodeExpansionRequired: accessType === 'block' }
    },
    controllerModifyVolume: async ({ volumeId, mutableParameters }) => {
      volumeOf(file.state, volumeId)
      checkMutable(mutableParameters)
      await changeVolume(file, volumeId, (volume) => ({ ...volume, mutableParameters: { ...volume.mutableParameters, ...mutableParameters } }))
    },
  }
}

function volumeMessage(driver: HostPath, { id, capacityBytes, contentSource }: StoredVolume): Volume {
  return { volumeId: id, capacityBytes, contentSource, accessibleTopology: [{ segments: { [topologyKey]: driver.nodeId } }] }
}

export async function conditionOf({ contents }: HostPath, { id }: StoredVolume) {
  const abnormal = !(await contents.exists(id))
  return { abnormal, message: abnormal ? 'the content of the volume is missing' : 'the volume is usable' }
}

async function statusOf(driver: HostPath, volume: StoredVolume): Promise<VolumeStatus> {
  return { publishedNodeIds: volume.attached ? [driver.nodeId] : [], volumeCondition: await conditionOf(driver, volume) }
}

async function createVolume(driver: HostPath, request: CreateVolumeRequest): Promise<StoredVolume> {
  const { file, contents } = driver
  const { name, capacityRange, volumeCapabilities, parameters, mutableParameters, accessibilityRequirements } = request
  const accessType = accessTypeOf(volumeCapabilities)
  checkParameters(parameters)
  checkMutable(mutableParameters)
  const contentSource = request.volumeContentSource ?? undefined
  const old = file.state.volumes.find((one) => one.name === name)
  if (old) return sameVolume(old, request, accessType)
  const requisite = accessibilityRequirements?.requisite ?? []
  if (requisite.length > 0 && !requisite.some((one) => isThisNode(driver, one)))
    throw new CsiError('RESOURCE_EXHAUSTED', `volumes are accessible on node ${driver.nodeId} only`)
  const source = contentSource && sourceOf(file.state, contentSource)
  if (source && source.accessType !== accessType) throw new CsiError('INVALID_ARGUMENT', `the source is a ${source.accessType} volume`)
  const capacityBytes = sizeIn(capacityRange, source?.bytes)
  const volume: StoredVolume = { id: `vol-${randomUUID()}`, name, accessType, capacityBytes, contentSource, mutableParameters, published: [] }
  // Without room for it, nothing is copied.
  reserve(driver, file.state, volume)
  await orRemove(contents, [volume.id], async () => {
    if (source) await contents.copy(source.id, volume.id, accessType, capacityBytes)
    else await contents.create(volume.id, accessType, capacityBytes)
    await file.update((state) => reserve(driver, state, volume))
  })
  return volume
}

/** @throws CsiError ALREADY_EXISTS when the volume of that name is another one */
function sameVolume(old: StoredVolume, { capacityRange, volumeContentSource }: CreateVolumeRequest, accessType: AccessType): StoredVolume {
  const isInRange = old.capacityBytes >= (capacityRange?.requiredBytes ?? 0) && old.capacityBytes <= (capacityRange?.limitBytes || Number.MAX_SAFE_INTEGER)
  const isSame = isInRange && old.accessType === accessType && sourceId(old.contentSource) === sourceId(volumeContentSource)
  if (!isSame) throw new CsiError('ALREADY_EXISTS', 'a volume of this name exists, with another size, access type or source')
  return old
}

const sourceId = (source: VolumeContentSource | null | undefined) => source?.snapshot?.snapshotId ?? source?.volume?.volumeId

function sourceOf(state: State, source: VolumeContentSource): { id: string; accessType: AccessType; bytes: number } {
  if (source.snapshot) {
    const { id, accessType, sizeBytes } = snapshotOf(state, source.snapshot.snapshotId)
    return { id, accessType, bytes: sizeBytes }
  }
  const { id, accessType, capacityBytes } = volumeOf(state, source.volume?.volumeId ?? '')
  return { id, accessType, bytes: capacityBytes }
}

/** The entry goes first: a start after a crash removes the content. */
async function deleteVolume({ file, contents }: HostPath, id: string): Promise<void> {
  const volume = file.state.volumes.find((one) => one.id === id)
  if (!volume) return
  if (volume.attached || volume.stagingPath !== undefined || volume.published.length > 0) throw new CsiError('FAILED_PRECONDITION', 'the volume is in use')
  await file.update((state) => ({ ...state, volumes: withoutEntry(state.volumes, id) }))
  await contents.remove(id)
}

const isThisNode = ({ nodeId }: HostPath, { segments }: Topology) => Object.entries(segments).every(([key, value]) => key === topologyKey && value === nodeId)

const usedBytes = (state: State) => state.volumes.reduce((sum, { capacityBytes }) => sum + capacityBytes, 0)

async function freeBytes({ file, capacityBytes, contents }: HostPath): Promise<number> {
  return capacityBytes === undefined ? contents.freeBytes() : Math.max(0, capacityBytes - usedBytes(file.state))
}

/** The state with the volume. @throws CsiError OUT_OF_RANGE, RESOURCE_EXHAUSTED */
function reserve({ capacityBytes: most }: HostPath, state: State, volume: StoredVolume): State {
  const next = { ...state, volumes: withEntry(state.volumes, volume) }
  if (most !== undefined && volume.capacityBytes > most) throw new CsiError('OUT_OF_RANGE', `volumes have at most ${most} bytes`)
  if (most !== undefined && usedBytes(next) > most) throw new CsiError('RESOURCE_EXHAUSTED', `the driver has ${most} bytes for all volumes`)
  return next
}

/** Provisioners add parameters of their own under a prefix. @throws CsiError INVALID_ARGUMENT */
export function checkParameters(parameters: TextMap): void {
  const unknown = Object.keys(parameters).find((key) => !key.startsWith('csi.storage.k8s.io/'))
  if (unknown !== undefined) throw new CsiError('INVALID_ARGUMENT', `parameter ${JSON.stringify(unknown)} is unknown`)
}

function checkMutable(parameters: TextMap): void {
  for (const [key, value] of Object.entries(parameters)) {
    const allowed = Object.hasOwn(mutable, key) ? mutable[key] : undefined
    if (!allowed) throw new CsiError('INVALID_ARGUMENT', `mutable parameter ${JSON.stringify(key)} is unknown`)
    if (!allowed.includes(value)) throw new CsiError('INVALID_ARGUMENT', `mutable parameter ${key} must be one of ${allowed.join(', ')}`)
  }
}
