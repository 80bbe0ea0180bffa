/**
 * The volumes and snapshots of the host path driver (L2): one file, replaced atomically before a change is answered. Content without an entry in the file belongs
 * to an operation that a crash interrupted: the next start removes it.
 */
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { listIfExists, makePrivateDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import type { AccessMode, TextMap, Timestamp, VolumeContentSource } from '../server/csiTypes.ts'

export type AccessType = 'block' | 'mount'

export interface Publication {
  readonly readonly: boolean
  readonly mode: AccessMode
}

export interface StoredVolume {
  readonly id: string
  readonly name: string
  readonly accessType: AccessType
  readonly capacityBytes: number
  readonly contentSource?: VolumeContentSource | undefined
  readonly mutableParameters: TextMap
  /** Absent: the volume is not published to the node. */
  readonly attached?: Publication | undefined
  readonly stagingPath?: string | undefined
  /** By target path. */
  readonly published: readonly (readonly [path: string, publication: Publication])[]
}

export interface StoredSnapshot {
  readonly id: string
  readonly name: string
  readonly sourceVolumeId: string
  readonly accessType: AccessType
  readonly sizeBytes: number
  readonly creationTime: Timestamp
  readonly groupId?: string | undefined
}

export interface StoredGroup {
  readonly id: string
  readonly name: string
  readonly sourceVolumeIds: readonly string[]
  readonly creationTime: Timestamp
}

/** Each list is sorted by id. */
export interface State {
  readonly volumes: readonly StoredVolume[]
  readonly snapshots: readonly StoredSnapshot[]
  readonly groups: readonly StoredGroup[]
}

export interface StateFile {
  readonly state: State
  /** Changes wait for each other. When the file cannot be written, the state stays as it was. @throws what `change` throws, and errors of the disk */
  update(change: (state: State) => State): Promise<void>
  /** The directory with the content of a volume or snapshot. */
  contentOf(id: string): string
}

/** Ids are made here alone; texts of requests that differ are no ids. */
export const idForm = /^(vol|snap|group)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const noEntries: State = { volumes: [], snapshots: [], groups: [] }

/** @throws Error when the file is damaged, or missing while there is content: volumes without their entries would be lost */
export async function openState(directory: string): Promise<StateFile> {
  const file = path.join(directory, 'state.json')
  const content = path.join(directory, 'content')
  await makePrivateDirectory(content)
  const text = await readTextIfExists(file)
  const names = (await listIfExists(content)).filter((name) => idForm.test(name))
  if (text === undefined && names.length > 0) throw new Error(`${file} is missing, and ${content} holds ${names.length} volumes or snapshots: restore the file`)
  const state: State = text === undefined ? noEntries : (JSON.parse(text) as State)
  // From here on a missing file is a lost one.
  if (text === undefined) await writeFileAtomic(file, JSON.stringify(state), 0o600)
  const known = new Set([...state.volumes, ...state.snapshots].map(({ id }) => id))
  for (const name of names) if (!known.has(name)) await rm(path.join(content, name), { recursive: true, force: true })
  return stateFile(
    state,
    (changed) => writeFileAtomic(file, JSON.stringify(changed), 0o600),
    (id) => path.join(content, id),
  )
}

/** Lost with the process. */
export function memoryState(): StateFile {
  return stateFile(
    noEntries,
    async () => {},
    (id) => id,
  )
}

function stateFile(first: State, save: (state: State) => Promise<void>, contentOf: StateFile['contentOf']): StateFile {
  let state = first
  let last: Promise<void> = Promise.resolve()
  return {
    get state() {
      return state
    },
    update: (change) => {
      const next = last.then(async () => {
        const changed = change(state)
        await save(changed)
        state = changed
      })
      last = next.catch(() => {})
      return next
    },
    contentOf,
  }
}

type Identified = { readonly id: string }

/** The list with the entry added or replaced. */
export function withEntry<T extends Identified>(entries: readonly T[], entry: T): T[] {
  return [...withoutEntry(entries, entry.id), entry].sort((a, b) => (a.id < b.id ? -1 : 1))
}

export function withoutEntry<T extends Identified>(entries: readonly T[], id: string): T[] {
  return entries.filter((entry) => entry.id !== id)
}
