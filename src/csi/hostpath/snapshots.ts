/** Snapshots of the host path driver (L2), alone and of several volumes at a time: complete copies, ready when the call is answered. */
import { randomUUID } from 'node:crypto'
import { type CsiController, CsiError, type CsiGroupController, type Snapshot, type Timestamp, type VolumeGroupSnapshot } from '../server/csiTypes.ts'
import { orRemove } from './content.ts'
import { checkParameters, type HostPath } from './controller.ts'
import { pageOf, snapshotOf, volumeOf } from './lookup.ts'
import { type State, type StoredGroup, type StoredSnapshot, withEntry, withoutEntry } from './state.ts'

/** The methods of the controller about single snapshots. */
export function createSnapshots(driver: HostPath): Pick<CsiController, 'createSnapshot' | 'deleteSnapshot' | 'listSnapshots' | 'getSnapshot'> {
  const { file } = driver
  return {
    createSnapshot: async ({ name, sourceVolumeId, parameters }) => {
      checkParameters(parameters)
      const old = file.state.snapshots.find((one) => one.name === name && one.groupId === undefined)
      if (old && old.sourceVolumeId !== sourceVolumeId) throw new CsiError('ALREADY_EXISTS', 'a snapshot of this name exists, of another volume')
      if (old) return { snapshot: snapshotMessage(old) }
      const snapshot = plan(driver, name, sourceVolumeId)
      await store(driver, [snapshot], (state) => state)
      return { snapshot: snapshotMessage(snapshot) }
    },
    deleteSnapshot: async ({ snapshotId }) => {
      const found = file.state.snapshots.find(({ id }) => id === snapshotId)
      if (found?.groupId !== undefined) throw new CsiError('INVALID_ARGUMENT', 'the snapshot is part of a group, which is deleted as a whole')
      if (found) await remove(driver, [found.id], (state) => state)
    },
    listSnapshots: ({ sourceVolumeId, snapshotId, ...page }) => {
      const wanted = file.state.snapshots.filter(
        (one) => (sourceVolumeId === '' || one.sourceVolumeId === sourceVolumeId) && (snapshotId === '' || one.id === snapshotId),
      )
      const { entries, nextToken } = pageOf(wanted, page)
      return { entries: entries.map((one) => ({ snapshot: snapshotMessage(one) })), nextToken }
    },
    getSnapshot: ({ snapshotId }) => ({ snapshot: snapshotMessage(snapshotOf(file.state, snapshotId)) }),
  }
}

/** Snapshots of several volumes, stored and removed together. */
export function createGroupController(driver: HostPath): CsiGroupController {
  const { file } = driver
  return {
    createVolumeGroupSnapshot: async ({ name, sourceVolumeIds, parameters }) => {
      checkParameters(parameters)
      const sources = [...new Set(sourceVolumeIds)].sort()
      const old = file.state.groups.find((one) => one.name === name)
      if (old && old.sourceVolumeIds.join() !== sources.join()) throw new CsiError('ALREADY_EXISTS', 'a group snapshot of this name exists, of other volumes')
      if (old) return { groupSnapshot: groupMessage(file.state, old) }
      const group: StoredGroup = { id: `group-${randomUUID()}`, name, sourceVolumeIds: sources, creationTime: timestamp(driver.now()) }
      const snapshots = sources.map((id) => plan(driver, `${name} ${id}`, id, group.id))
      await store(driver, snapshots, (state) => ({ ...state, groups: withEntry(state.groups, group) }))
      return { groupSnapshot: groupMessage(file.state, group) }
    },
    deleteVolumeGroupSnapshot: async ({ groupSnapshotId, snapshotIds }) => {
      const group = file.state.groups.find(({ id }) => id === groupSnapshotId)
      if (!group) return
      checkMembers(file.state, group, snapshotIds)
      await remove(driver, membersOf(file.state, group), (state) => ({ ...state, groups: withoutEntry(state.groups, group.id) }))
    },
    getVolumeGroupSnapshot: ({ groupSnapshotId, snapshotIds }) => {
      const group = file.state.groups.find(({ id }) => id === groupSnapshotId)
      if (!group) throw new CsiError('NOT_FOUND', 'no such group snapshot')
      checkMembers(file.state, group, snapshotIds)
      return { groupSnapshot: groupMessage(file.state, group) }
    },
  }
}

/** @throws CsiError NOT_FOUND when the volume does not exist */
function plan({ file, now }: HostPath, name: string, sourceVolumeId: string, groupId?: string): StoredSnapshot {
  const { accessType, capacityBytes } = volumeOf(file.state, sourceVolumeId)
  return { id: `snap-${randomUUID()}`, name, sourceVolumeId, accessType, sizeBytes: capacityBytes, creationTime: timestamp(now()), groupId }
}

/** All of them or none. */
async function store({ file, contents }: HostPath, snapshots: readonly StoredSnapshot[], change: (state: State) => State): Promise<void> {
  const ids = snapshots.map(({ id }) => id)
  await orRemove(contents, ids, async () => {
    for (const { id, sourceVolumeId, accessType, sizeBytes } of snapshots) await contents.copy(sourceVolumeId, id, accessType, sizeBytes)
    await file.update((state) => ({ ...change(state), snapshots: snapshots.reduce(withEntry<StoredSnapshot>, [...state.snapshots]) }))
  })
}

/** The entries go first: a start after a crash removes the content. */
async function remove({ file, contents }: HostPath, ids: readonly string[], change: (state: State) => State): Promise<void> {
  await file.update((state) => ({ ...change(state), snapshots: state.snapshots.filter(({ id }) => !ids.includes(id)) }))
  for (const id of ids) await contents.remove(id)
}

const membersOf = (state: State, group: StoredGroup) => state.snapshots.filter(({ groupId }) => groupId === group.id).map(({ id }) => id)

function checkMembers(state: State, group: StoredGroup, ids: readonly string[]): void {
  const members = membersOf(state, group)
  if (ids.length !== members.length || ids.some((id) => !members.includes(id))) throw new CsiError('INVALID_ARGUMENT', 'snapshotIds are not those of the group')
}

const timestamp = (ms: number): Timestamp => ({ seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1_000_000 })

function snapshotMessage({ id, sourceVolumeId, sizeBytes, creationTime, groupId }: StoredSnapshot): Snapshot {
  return { snapshotId: id, sourceVolumeId, sizeBytes, creationTime, readyToUse: true, groupSnapshotId: groupId }
}

function groupMessage(state: State, group: StoredGroup): VolumeGroupSnapshot {
  const snapshots = state.snapshots.filter(({ groupId }) => groupId === group.id).map(snapshotMessage)
  return { groupSnapshotId: group.id, snapshots, creationTime: group.creationTime, readyToUse: true }
}
