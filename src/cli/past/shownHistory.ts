/** An object's versions as `skiff history` and the page show them (L4): the time, the writer and the changed fields of each. */

import { type FieldChange, fieldChanges } from '#api/debug/fieldChanges'
import type { RevisionHistory } from '#api/debug/revisions'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import { revisionsOf } from './connection.ts'
import type { Kind } from './objects.ts'
import { managerOf, type Version, versionsOf } from './versions.ts'

export interface ShownVersion {
  readonly revision: number
  readonly time: string | null
  readonly type: 'created' | 'updated' | 'deleted' | 'oldest'
  readonly by?: string | undefined
  readonly changes: readonly FieldChange[]
}

export interface ShownHistory {
  /** The newest first. */
  readonly shown: readonly ShownVersion[]
  /** Whether there are older versions: beyond the limit, or compacted. */
  readonly isCut: boolean
}

export interface WantedHistory {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly limit: number
  readonly showSecrets: boolean
  /** False: deleted objects, and earlier ones of the same name, are not searched. */
  readonly searches?: boolean
}

export async function shownHistory(
  transport: Transport,
  { showSecrets, ...wanted }: WantedHistory,
  { revision: newest, oldestRevision: oldest }: RevisionHistory,
): Promise<ShownHistory> {
  const { versions, isCut } = await versionsOf(transport, { ...wanted, oldest, newest })
  const times = await timesOf(transport, versions)
  const shown = versions.map((version): ShownVersion => {
    const type = typeOf(version, oldest)
    const changes = type === 'updated' ? fieldChanges(version.before, version.object, { showSecrets }) : []
    return { revision: version.revision, time: times[version.revision] ?? null, type, by: managerOf(version), changes }
  })
  return { shown, isCut }
}

async function timesOf(transport: Transport, versions: readonly Version[]): Promise<Readonly<Record<string, string | null>>> {
  if (versions.length === 0) return {}
  try {
    return (await revisionsOf(transport, { revisions: versions.map(({ revision }) => revision).join(',') })).times ?? {}
  } catch (error) {
    if (isStatus(error, 'Forbidden')) return {}
    throw error
  }
}

/** `oldest`: the state before it is compacted, so that it may have been created or updated. */
function typeOf({ revision, object, before }: Version, oldest: number): ShownVersion['type'] {
  if (!object) return 'deleted'
  if (before) return 'updated'
  return revision > oldest ? 'created' : 'oldest'
}
