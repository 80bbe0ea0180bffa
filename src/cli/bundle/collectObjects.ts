/** Reads the objects of a cluster and their history for a bundle (L4): the state at the oldest revision that is wanted, and every change since then. */
import { createInterface } from 'node:readline'
import type { RevisionHistory } from '#api/debug/revisions'
import { builtInResource } from '#api/discovery/resources'
import { parseExactly } from '#api/machinery/json'
import { parseGroupVersion, type Unstructured } from '#api/machinery/meta'
import { isStatus, StatusError } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { createClient } from '#client/clientOverTransport'
import type { HttpTransport } from '#client/httpTransport'
import { listPages } from '#client/listAll'
import type { ObjectFile, StateFacts } from '../bundles.ts'
import { CommandError } from '../exitCodes.ts'
import { revisionsOf } from '../past/connection.ts'
import { discoverKinds, isUnlistable, type Kind, nameOf, objectsAt, type PastObject } from '../past/objects.ts'
import type { MissingPart } from './format.ts'
import type { Redactor } from './redaction/redactor.ts'

export interface CollectedObjects extends StateFacts {
  readonly objects: number
  readonly changes: number
  readonly missing: readonly MissingPart[]
}

export interface ObjectSource {
  readonly transport: HttpTransport
  readonly redactor: Redactor
  readonly nowMs: number
  /** Age of the oldest state; undefined: all that is kept. */
  readonly historyMs: number | undefined
}

/** @throws StatusError Expired when the oldest revision was compacted meanwhile */
export async function collectObjects(source: ObjectSource, file: ObjectFile): Promise<CollectedObjects> {
  const { transport, redactor } = source
  const { kinds: all, failed } = await discoverKinds(transport)
  const kinds = await inStoredVersions(transport, withoutRepeated(all))
  const missing: MissingPart[] = [...failed].map(([groupVersion, { message }]) => ({ what: `objects of ${groupVersion}`, reason: message }))
  const range = await rangeOf(source, kinds, missing)
  const reading: Reading = { ...source, range, missing, kinds }
  await learnSecrets(reading)
  for (const kind of kinds) {
    for await (const object of readable(reading, kind)) {
      await file.add(kind, redactor.object(object))
    }
  }
  const changes = await collectChanges(reading, file)
  return { ...range, objects: file.count, changes, missing }
}

interface Reading extends ObjectSource {
  readonly kinds: readonly Kind[]
  readonly range: StateFacts
  readonly missing: MissingPart[]
}

/** Some objects are served by two groups, and stored once. */
function withoutRepeated(kinds: readonly Kind[]): readonly Kind[] {
  const known = new Set<string>()
  return kinds.filter(({ group, version, resource }) => {
    const prefix = builtInResource(group, version, resource)?.storage?.prefix ?? `${group}/${resource}`
    return !known.has(prefix) && known.add(prefix)
  })
}

interface StoredVersions {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly storage: boolean; readonly served: boolean }[]
  }
}

const secretKind = { group: '', version: 'v1', resource: 'secrets', kind: 'Secret', namespaced: true }
const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Custom resources are read in the version that is stored: the server of a bundle converts none. A user who may not read definitions gets the preferred versions. */
async function inStoredVersions(transport: HttpTransport, kinds: readonly Kind[]): Promise<readonly Kind[]> {
  const answer = await transport.request({ method: 'GET', path: definitionsPath }).catch((error: unknown) => {
    if (!isStatus(error)) throw error
    return undefined
  })
  const stored = new Map<string, string>()
  for (const { spec } of ((answer?.body as { items?: readonly StoredVersions[] })?.items ?? []) as readonly StoredVersions[]) {
    const version = spec.versions.find(({ storage, served }) => storage && served)
    if (version) stored.set(`${spec.names.plural}.${spec.group}`, version.name)
  }
  return kinds.map((kind) => ({ ...kind, version: stored.get(nameOf(kind)) ?? kind.version }))
}

const refusals = ['Forbidden', 'Unauthorized', 'NotFound', 'ServiceUnavailable'] as const
const isRefused = (error: unknown): boolean => refusals.some((reason) => isStatus(error, reason)) || error instanceof CommandError

async function rangeOf({ transport, nowMs, historyMs }: ObjectSource, kinds: readonly Kind[], missing: MissingPart[]): Promise<StateFacts> {
  let history: RevisionHistory
  try {
    history = await revisionsOf(transport, historyMs === undefined ? {} : { time: formatTime(nowMs - historyMs) })
  } catch (error) {
    if (!isRefused(error)) throw error
    missing.push({ what: 'history', reason: messageOf(error) })
    const revision = await newestRevision(transport, kinds)
    return { revision, oldestRevision: revision }
  }
  const { revision, oldestRevision, at = oldestRevision } = history
  const { status, body } = await changesAnswer(transport, revision, revision)
  body.destroy()
  if (status !== 200) {
    missing.push({ what: 'history', reason: `the server answers /skiff/changes with ${status}` })
    return { revision, oldestRevision: revision }
  }
  return { revision, oldestRevision: Math.min(revision, Math.max(at, oldestRevision, 1)) }
}

/** From the first list that the user may read. */
async function newestRevision(transport: HttpTransport, kinds: readonly Kind[]): Promise<number> {
  for (const { group, version, resource } of kinds) {
    const path = group === '' ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`
    try {
      const { body } = await transport.request({ method: 'GET', path, query: { limit: '1' } })
      const revision = Number((body as { metadata?: { resourceVersion?: string } }).metadata?.resourceVersion)
      if (revision > 0) return revision
    } catch (error) {
      if (!isStatus(error)) throw error
    }
  }
  throw new CommandError('unmetPrerequisite', 'this user may list nothing in this cluster')
}

async function learnSecrets(reading: Reading): Promise<void> {
  const { kinds, redactor } = reading
  const secrets = kinds.find((kind) => nameOf(kind) === 'secrets')
  if (!secrets) return
  // The second reading names what is missing.
  for await (const secret of readable({ ...reading, missing: [] }, secrets)) redactor.learn(secret)
  for await (const { object } of changesOf({ ...reading, missing: [] }, 'secrets')) redactor.learn(object)
}

/** Secrets as they are now: logs and traces are younger than the objects, and may have values that these do not. */
export async function learnNewestSecrets(transport: HttpTransport, redactor: Redactor): Promise<void> {
  try {
    for await (const { items } of listPages(createClient(transport).of<Unstructured>(secretKind), {})) for (const secret of items) redactor.learn(secret)
  } catch (error) {
    // The objects of the bundle have named the refusal.
    if (!isRefused(error)) throw error
  }
}

async function* readable({ transport, range, missing }: Reading, kind: Kind): AsyncGenerator<PastObject> {
  try {
    yield* objectsAt(transport, kind, range.oldestRevision)
  } catch (error) {
    if (isUnlistable(error)) return
    if (isStatus(error, 'Expired') || !isStatus(error)) throw error
    missing.push({ what: `objects of ${nameOf(kind)}`, reason: error.message })
  }
}

async function collectChanges(reading: Reading, file: ObjectFile): Promise<number> {
  const kinds = new Map(reading.kinds.map((kind) => [`${kind.group}/${kind.kind}`, kind]))
  let count = 0
  for await (const { type, object } of changesOf(reading)) {
    const kind = kinds.get(`${parseGroupVersion(object.apiVersion).group}/${object.kind}`)
    if (!kind) continue
    count++
    if (type === 'DELETED') file.remove(kind, object)
    else await file.add(kind, reading.redactor.object(object))
  }
  return count
}

interface Change {
  readonly type: string
  readonly object: PastObject
}

function changesAnswer(transport: HttpTransport, after: number, to: number, resource?: string) {
  const query = new URLSearchParams({ after: String(after), to: String(to), ...(resource === undefined ? {} : { resource }) })
  return transport.forward({ method: 'GET', target: `/skiff/changes?${query}`, headers: { accept: 'application/json' }, body: undefined })
}

async function* changesOf({ transport, range: { revision, oldestRevision }, missing }: Reading, resource?: string): AsyncGenerator<Change> {
  if (revision === oldestRevision) return
  const answer = await changesAnswer(transport, oldestRevision, revision, resource)
  if (answer.status !== 200) {
    answer.body.destroy()
    if (answer.status === 410) throw new StatusError('Expired', 'the history was compacted')
    throw new CommandError('unmetPrerequisite', `the server answers /skiff/changes with ${answer.status}`)
  }
  for await (const line of createInterface({ input: answer.body, crlfDelay: Number.POSITIVE_INFINITY })) {
    const change = parseExactly(line) as Change & { readonly object: { readonly prefixes?: readonly string[] } }
    if (change.type === 'REFUSED')
      missing.push(...(change.object.prefixes ?? []).map((prefix) => ({ what: `history of ${prefix}`, reason: 'the user may not list it' })))
    else if (change.type === 'UNREADABLE') missing.push({ what: `${change.object.kind} ${change.object.metadata.name}`, reason: 'the server cannot read it' })
    else yield change
  }
}
