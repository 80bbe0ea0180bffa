/**
 * Hands a volume to the pod's fsGroup (L3): every file and directory below gets the group, group permissions, and directories the
 * set-group-id bit, so that what is created later belongs to the group too. A tree may be large: the walk yields between directories
 * and handles a bounded number of files at once. Upstream: pkg/volume/volume_linux.go (v1.36).
 */
import type { Stats } from 'node:fs'
import { chmod, chown, type FileHandle, opendir, stat } from 'node:fs/promises'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'
import { openEntry, openPlace, pathOf } from '../core/safeOpen.ts'

export interface Ownership {
  readonly fsGroup: number | undefined
  /** The group may only read. */
  readonly readOnly?: boolean | undefined
  /** 'OnRootMismatch' leaves a volume alone whose root is right already; everything else always walks. */
  readonly policy?: string | undefined
  /** Called for every file that was changed. */
  readonly onFile?: (() => void) | undefined
}

const setGroupId = 0o2000
const directoryMask = setGroupId | 0o110
const filesAtOnce = 64

const permissions = (readOnly: boolean | undefined) => (readOnly ? 0o440 : 0o660)

/** Changes owner group and mode of everything at and below the path. Nothing happens without a group. */
export async function setVolumeOwnership(path: string, { fsGroup, readOnly, policy, onFile = () => {} }: Ownership): Promise<void> {
  if (fsGroup === undefined) return
  if (policy === 'OnRootMismatch' && rootIsRight(await stat(path), fsGroup, readOnly)) return
  await changeTree(await openPlace(path), { group: fsGroup, mask: permissions(readOnly), onFile })
}

/** Whether the root has the group, at least the permissions, and the set-group-id bit: then all below is taken to be right. */
export function rootIsRight(root: Pick<Stats, 'gid' | 'mode' | 'isDirectory'>, fsGroup: number, readOnly: boolean | undefined): boolean {
  const wanted = permissions(readOnly) | directoryMask
  return root.isDirectory() && root.gid === fsGroup && (root.mode & wanted) === wanted
}

interface Change {
  readonly group: number
  readonly mask: number
  onFile(): void
}

/**
 * Children first: a correct root then proves that the walk was finished. Every entry is opened from its directory and changed by its descriptor,
 * so that a container that replaces a directory by a link meanwhile has no effect. Closes the place.
 */
async function changeTree(place: FileHandle, change: Change): Promise<void> {
  try {
    const stats = await place.stat()
    if (stats.isDirectory()) await changeEntries(place, change)
    await changeOne(place, stats, change)
  } finally {
    await place.close()
  }
}

/** Ends when no entry is under way: once the directory is closed, the kernel gives its descriptor to another file. @throws the first error */
async function changeEntries(directory: FileHandle, change: Change): Promise<void> {
  const failures: unknown[] = []
  let batch: Promise<unknown>[] = []
  const start = (name: string) => changeEntry(openEntry(directory, name), change).catch((error: unknown) => failures.push(error))
  try {
    for await (const entry of await opendir(pathOf(directory))) {
      // One directory at a time: the depth of the tree bounds what is open.
      if (entry.isDirectory()) await start(entry.name)
      else batch.push(start(entry.name))
      if (failures.length > 0) break
      if (batch.length < filesAtOnce) continue
      await Promise.all(batch)
      batch = []
    }
  } finally {
    await Promise.all(batch)
  }
  if (failures.length > 0) throw failures[0]
}

async function changeEntry(opening: Promise<FileHandle | undefined>, change: Change): Promise<void> {
  const place = await opening
  if (place) await changeTree(place, change)
}

async function changeOne(place: FileHandle, stats: Stats, { group, mask, onFile }: Change): Promise<void> {
  onFile()
  // What a link points to is changed where it is, if it is in the volume at all.
  if (stats.isSymbolicLink()) return
  await chown(pathOf(place), stats.uid, group)
  await chmod(pathOf(place), (stats.mode & 0o7777) | mask | (stats.isDirectory() ? directoryMask : 0))
}

const slowMs = 30_000
const reportMs = 60_000
const advice = 'https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods'

/** Records events about a long walk: first that it is slow, then its progress every minute. Call `stop` at its end. */
export function watchOwnership({ clock, recorder }: Pick<KubeletContext, 'clock' | 'recorder'>, pod: FrozenPod, directory: string) {
  const uid = pod.metadata.uid ?? ''
  const name = directory.slice(Math.max(0, directory.indexOf(`/${uid}/`) + 1))
  const record = (message: string) =>
    recorder.event(podReference(pod), 'Warning', 'VolumePermissionChangeInProgress', `Setting volume ownership for ${name}${message}`)
  let files = 0
  let timer = clock.timer(slowMs, () => {
    record(` is taking longer than expected, consider using OnRootMismatch - ${advice}`)
    timer = clock.timer(reportMs, report)
  })
  const report = () => {
    record(`, processed ${files} files.`)
    timer = clock.timer(reportMs, report)
  }
  return { seen: () => void files++, stop: () => timer.cancel() }
}
