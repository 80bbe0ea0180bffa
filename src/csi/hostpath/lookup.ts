/** Finds and changes volumes and snapshots by the ids of requests (L2), and cuts lists into pages. */
import { type CapacityRange, CsiError, type Page, type VolumeCapability } from '../server/csiTypes.ts'
import { type AccessType, idForm, type State, type StateFile, type StoredSnapshot, type StoredVolume, withEntry } from './state.ts'

/** @throws CsiError NOT_FOUND */
export function volumeOf(state: State, id: string): StoredVolume {
  const volume = state.volumes.find((one) => one.id === id)
  if (!volume) throw new CsiError('NOT_FOUND', 'no such volume')
  return volume
}

/** @throws CsiError NOT_FOUND when the volume does not exist by then */
export function changeVolume(file: StateFile, id: string, next: (volume: StoredVolume) => StoredVolume): Promise<void> {
  return file.update((state) => ({ ...state, volumes: withEntry(state.volumes, next(volumeOf(state, id))) }))
}

/** @throws CsiError NOT_FOUND */
export function snapshotOf(state: State, id: string): StoredSnapshot {
  const snapshot = state.snapshots.find((one) => one.id === id)
  if (!snapshot) throw new CsiError('NOT_FOUND', 'no such snapshot')
  return snapshot
}

/** @throws CsiError INVALID_ARGUMENT when the capabilities differ in it */
export function accessTypeOf(capabilities: readonly VolumeCapability[]): AccessType {
  const types = new Set(capabilities.map(({ block }) => (block ? 'block' : 'mount')))
  if (types.size > 1) throw new CsiError('INVALID_ARGUMENT', 'a volume has one access type, block or mount')
  return types.has('block') ? 'block' : 'mount'
}

const gigabyte = 2 ** 30

/** @param least bytes that the volume needs in any case. @throws CsiError OUT_OF_RANGE */
export function sizeIn(range: CapacityRange | null, least = 0): number {
  const limit = range?.limitBytes || Number.MAX_SAFE_INTEGER
  const bytes = Math.max(range?.requiredBytes || (least > 0 ? least : Math.min(gigabyte, limit)), least)
  if (bytes > limit || !Number.isSafeInteger(bytes)) throw new CsiError('OUT_OF_RANGE', `the volume needs ${bytes} bytes, the limit is ${limit}`)
  return bytes
}

/** The next page starts at an id; the entry with that id may be deleted until then. @throws CsiError ABORTED for a token that is no id */
export function pageOf<T extends { readonly id: string }>(entries: readonly T[], { maxEntries, startingToken }: Page): { entries: T[]; nextToken: string } {
  if (maxEntries < 0) throw new CsiError('INVALID_ARGUMENT', 'maxEntries must not be negative')
  if (startingToken !== '' && !idForm.test(startingToken)) throw new CsiError('ABORTED', 'startingToken is no token of this driver')
  const rest = entries.filter(({ id }) => id >= startingToken)
  const page = maxEntries > 0 ? rest.slice(0, maxEntries) : rest
  return { entries: page, nextToken: rest[page.length]?.id ?? '' }
}
