/**
 * The store of a bundle, in memory (L5). Bundles come from others: values must be JSON objects below known keys, and definitions lose what would make a
 * server call a program.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseExactly } from '#api/machinery/json'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type BundleIndex, DamagedBundle } from '#cli/bundle/format'
import { DamagedDatabase } from '#store/bbolt/reader'
import { createStillStore } from '#store/drivers/memory'
import { NoSnapshot, readSnapshot } from '#store/snapshot/readSnapshot'
import { hasTrailer, trailerBytes } from '#store/snapshot/snapshotFile'
import type { LocalStore, StoredChange } from '#store/store'

const definitionsPrefix = '/registry/apiextensions.k8s.io/customresourcedefinitions/'
/** A change takes some 400 bytes of memory besides its value: this is less than a gibibyte, and 20 days of a busy pipeline. */
const mostChanges = 2_000_000
const openingBrace = 0x7b

/** @param database etcd's snapshot @throws DamagedBundle */
export async function storeOfBundle(database: Buffer, { revision, oldestRevision }: BundleIndex, clock: Clock): Promise<LocalStore> {
  const length = hasTrailer(database.length) ? database.length - trailerBytes : database.length
  const changes: StoredChange[] = []
  const take = (some: readonly StoredChange[]) => {
    if (changes.length + some.length > mostChanges) throw new DamagedBundle(`it has more than ${mostChanges} changes`)
    for (const change of some) if (change.key.startsWith('/')) changes.push(checked(change))
  }
  const source = { length, read: (position: number, bytes: number) => database.subarray(position, position + bytes) }
  const summary = await readSnapshot(source, take).catch((error: unknown) => {
    throw error instanceof DamagedDatabase || error instanceof NoSnapshot ? new DamagedBundle(messageOf(error)) : error
  })
  if (summary.revision !== revision) throw new DamagedBundle(`its objects are of revision ${summary.revision}, and its index says ${revision}`)
  if (oldestRevision > revision) throw new DamagedBundle('its history begins after its end')
  return createStillStore(changes, oldestRevision > 1 ? oldestRevision : 0, { clock, log: noLog })
}

function checked(change: StoredChange): StoredChange {
  const own = change.lease === 0 ? change : { ...change, lease: 0 }
  if (change.version === 0 || change.value.length === 0) return own
  if (change.value[0] !== openingBrace) throw new DamagedBundle('an object is no JSON')
  return change.key.startsWith(definitionsPrefix) ? { ...own, value: withoutConversion(change.value) } : own
}

/** A webhook would be called for each object of another version. */
function withoutConversion(value: Uint8Array): Uint8Array {
  try {
    const definition = parseExactly(value) as { spec?: Record<string, unknown> }
    if (typeof definition.spec !== 'object' || definition.spec === null) return value
    const { conversion: _, ...spec } = definition.spec
    return Buffer.from(stringifyExactly({ ...definition, spec }))
  } catch {
    throw new DamagedBundle('a definition of custom resources is no JSON')
  }
}
