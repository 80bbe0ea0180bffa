/** Random writes, valid and invalid, each with the answer that it must get. */
import assert from 'node:assert/strict'
import { StatusError } from '#api/machinery/status'
import type { ApiRequest, Transport } from '#client/transport'
import type { Chance } from '../fuzz/chance.ts'
import { type Any, collectionPath, type HistoryKind, keyOf, kinds, namespaces } from './kinds.ts'
import type { Change, Model } from './model.ts'

/** 'ok', or the reason of the Status. */
type Outcome = string

export interface Write {
  readonly kind: HistoryKind
  readonly key: string
  readonly request: ApiRequest
  /** Outcome of the losers: exactly one of several racing writes gets `ok`. */
  readonly race?: Outcome | undefined
  readonly wanted: Outcome
  /** What it does when it succeeds. */
  readonly effect: 'create' | 'spec' | 'metadata' | 'status' | 'delete' | 'nothing'
  readonly manager: string
}

export interface Written {
  readonly write: Write
  readonly outcome: Outcome
  readonly object: Any
}

const objectNames = Array.from({ length: 10 }, (_, i) => `n${i}`)
const missing = 'NotFound'

export class Writer {
  readonly #model: Model
  readonly #chance: Chance
  #marks = 0

  constructor(model: Model, chance: Chance) {
    this.#model = model
    this.#chance = chance
  }

  /** Writes that may run at once: of different objects, or racing for one in a way whose end is known. */
  round(count: number): Write[] {
    const taken = new Set<string>()
    const writes: Write[] = []
    while (writes.length < count) {
      const kind = this.#chance.pick(kinds)
      const [namespace, name] = [this.#chance.pick(namespaces), this.#chance.pick(objectNames)]
      const id = `${kind.resource}/${namespace}/${name}`
      if (taken.has(id)) continue
      taken.add(id)
      writes.push(...this.#writesOf(kind, namespace, name))
    }
    return writes
  }

  #writesOf(kind: HistoryKind, namespace: string, name: string): Write[] {
    const current = this.#model.get(kind, `${namespace}/${name}`)
    const choose = this.#chance.int(24)
    if (!current) return choose < 17 ? this.#creates(kind, namespace, name) : [this.#onMissing(kind, namespace, name)]
    if (choose < 6) return [this.#update(kind, current)]
    if (choose < 11) return [this.#patch(kind, current)]
    if (choose < 14) return kind.changeStatus ? [this.#status(kind, current)] : [this.#update(kind, current)]
    if (choose < 17) return this.#race(kind, current)
    if (choose < 19) return [this.#invalid(kind, current)]
    if (choose < 20) return [this.#unchanged(kind, current)]
    if (choose < 21) return this.#creates(kind, namespace, name)
    return [this.#delete(kind, current)]
  }

  #creates(kind: HistoryKind, namespace: string, name: string): Write[] {
    const there = this.#model.get(kind, `${namespace}/${name}`) !== undefined
    const racers = this.#chance.once(4) ? 2 + this.#chance.int(3) : 1
    return Array.from({ length: racers }, () => {
      const request = { method: 'POST', path: collectionPath(kind, namespace), body: this.#object(kind, namespace, name) } as const
      const race = racers > 1 && !there ? 'AlreadyExists' : undefined
      return this.#write(kind, `${namespace}/${name}`, request, there ? 'AlreadyExists' : 'ok', 'create', race)
    })
  }

  #onMissing(kind: HistoryKind, namespace: string, name: string): Write {
    const body = this.#object(kind, namespace, name)
    const method = this.#chance.pick(['PUT', 'DELETE', 'PATCH'] as const)
    const request: ApiRequest =
      method === 'PUT'
        ? { method, path: pathOf(kind, namespace, name), body: { ...body, metadata: { ...body.metadata, resourceVersion: '1' } } }
        : { method, path: pathOf(kind, namespace, name), ...(method === 'PATCH' ? merge({ metadata: { labels: { team: 'x' } } }) : {}) }
    return this.#write(kind, `${namespace}/${name}`, request, missing, 'nothing')
  }

  #update(kind: HistoryKind, current: Any): Write {
    const body = structuredClone(current)
    const version = this.#chance.pick(['current', 'current', 'current', 'stale', 'none'])
    const onlyLabels = this.#chance.once(3)
    if (onlyLabels) body.metadata.labels = { team: this.#chance.pick(['x', 'y', 'z']), mark: String(this.#mark()) }
    else kind.change(body, this.#mark())
    if (version === 'stale') body.metadata.resourceVersion = String(Number(current.metadata.resourceVersion) - 1)
    if (version === 'none') delete body.metadata.resourceVersion
    const refused = version === 'stale' ? 'Conflict' : version === 'none' && !kind.unconditional ? 'Invalid' : 'ok'
    return this.#write(kind, keyOf(current), { method: 'PUT', path: objectPath(kind, current), body }, refused, onlyLabels ? 'metadata' : 'spec')
  }

  #patch(kind: HistoryKind, current: Any): Write {
    const path = objectPath(kind, current)
    const mark = this.#mark()
    const send = (request: Partial<ApiRequest>, effect: Write['effect'], wanted: Outcome = 'ok') =>
      this.#write(kind, keyOf(current), { method: 'PATCH', path, ...request }, wanted, effect)
    switch (this.#chance.int(5)) {
      case 0:
        return send(merge({ metadata: { labels: { team: this.#chance.pick(['x', 'y', null]), mark: String(mark) } } }), 'metadata')
      case 1: {
        const operations = [{ op: 'add', path: '/metadata/labels', value: { team: this.#chance.pick(['x', 'y']), mark: String(mark) } }]
        return send({ contentType: 'application/json-patch+json', body: operations }, 'metadata')
      }
      case 2:
        return send({ contentType: 'application/json-patch+json', body: [{ op: 'test', path: '/metadata/uid', value: 'another' }] }, 'nothing', 'Invalid')
      case 3:
        return kind.strategic
          ? send({ contentType: 'application/strategic-merge-patch+json', body: kind.patch(mark) }, 'spec')
          : send(merge(kind.patch(mark)), 'spec')
      default: {
        const { name, namespace } = current.metadata
        const body = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name, namespace }, ...kind.patch(mark) }
        return send({ contentType: 'application/apply-patch+yaml', body: JSON.stringify(body), query: { force: 'true' } }, 'spec')
      }
    }
  }

  /** A status update; the server must ignore its change of the spec. */
  #status(kind: HistoryKind, current: Any): Write {
    const body = structuredClone(current)
    kind.changeStatus?.(body, this.#mark(), this.#chance)
    kind.change(body, this.#mark())
    const stale = this.#chance.once(5)
    if (stale) body.metadata.resourceVersion = String(Number(current.metadata.resourceVersion) - 1)
    return this.#write(kind, keyOf(current), { method: 'PUT', path: `${objectPath(kind, current)}/status`, body }, stale ? 'Conflict' : 'ok', 'status')
  }

  /** Optimistic concurrency: all have read the same. */
  #race(kind: HistoryKind, current: Any): Write[] {
    const racers = 2 + this.#chance.int(4)
    return Array.from({ length: racers }, () => {
      const body = structuredClone(current)
      kind.change(body, this.#mark())
      return this.#write(kind, keyOf(current), { method: 'PUT', path: objectPath(kind, current), body }, 'ok', 'spec', 'Conflict')
    })
  }

  #invalid(kind: HistoryKind, current: Any): Write {
    const body = structuredClone(current)
    kind.spoil(body)
    return this.#write(kind, keyOf(current), { method: 'PUT', path: objectPath(kind, current), body }, 'Invalid', 'nothing')
  }

  #unchanged(kind: HistoryKind, current: Any): Write {
    return this.#write(kind, keyOf(current), { method: 'PUT', path: objectPath(kind, current), body: structuredClone(current) }, 'ok', 'nothing')
  }

  #delete(kind: HistoryKind, current: Any): Write {
    const uid = this.#chance.pick(['right', 'wrong', 'any'])
    const preconditions = uid === 'any' ? {} : { preconditions: { uid: uid === 'right' ? current.metadata.uid : 'another' } }
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, ...preconditions }
    const wanted = uid === 'wrong' ? 'Conflict' : 'ok'
    return this.#write(kind, keyOf(current), { method: 'DELETE', path: objectPath(kind, current), body }, wanted, 'delete')
  }

  #object(kind: HistoryKind, namespace: string, name: string): Any {
    const team = this.#chance.pick(['x', 'y', undefined])
    const metadata = { namespace, name, ...(team ? { labels: { team } } : {}) }
    return { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...kind.make(this.#mark(), this.#chance) }
  }

  #write(kind: HistoryKind, key: string, request: ApiRequest, wanted: Outcome, effect: Write['effect'], race?: Outcome): Write {
    const manager = `manager-${this.#chance.int(3)}`
    const query = request.method === 'DELETE' ? request.query : { ...request.query, fieldManager: manager }
    return { kind, key, request: { ...request, query }, wanted, effect, manager, race }
  }

  /** Never twice the same. */
  #mark(): number {
    return ++this.#marks
  }
}

export async function carryOut(transport: Transport, write: Write): Promise<Written> {
  try {
    const { body } = await transport.request(write.request)
    return { write, outcome: 'ok', object: body }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    if (error.code >= 500) assert.fail(`${describe(write)} was answered ${error.code} ${error.message}`)
    return { write, outcome: error.reason, object: undefined }
  }
}

/** The answer must be the wanted one, and the model's changes since then must equal the acknowledged writes: none lost, none added. */
export function checkWritten(written: readonly Written[], changes: ReadonlyMap<HistoryKind, readonly Change[]>): void {
  checkRaces(written)
  for (const { write, outcome } of written) {
    if (!write.race && outcome !== write.wanted) assert.fail(`${describe(write)} got ${outcome} instead of ${write.wanted}`)
  }
  const done = written.filter(({ write, outcome }) => outcome === 'ok' && write.effect !== 'nothing')
  const all = [...changes].flatMap(([kind, list]) => list.map((change) => ({ kind, change })))
  const marks = all.filter(({ change }) => isMark(change))
  const happened = all.filter(({ change }) => !isMark(change))
  const deletedPods = done.filter(({ write }) => write.effect === 'delete' && write.kind.resource === 'pods').map(({ write }) => write.key)
  assert.deepEqual(marks.map(({ change }) => change.key).sort(), deletedPods.sort(), 'the pods that were marked before they were deleted')
  assert.equal(happened.length, done.length, `${done.length} writes were acknowledged, ${happened.length} happened`)
  for (const { kind, change } of happened) {
    const one = done.find(({ write }) => write.kind === kind && write.key === change.key)
    assert.ok(one, `nobody wrote ${kind.resource} ${change.key}`)
    checkChange(one, change)
  }
}

/** A pod is marked for deletion by a write of its own, also when it has no grace. */
function isMark({ object, previous }: Change): boolean {
  if (object?.metadata.deletionTimestamp === undefined) return false
  assert.equal(object.metadata.deletionGracePeriodSeconds, 0)
  assert.equal(object.metadata.generation, (previous?.metadata.generation ?? 0) + 1)
  return true
}

function checkRaces(written: readonly Written[]): void {
  const races = new Map<string, Written[]>()
  for (const one of written) {
    if (!one.write.race) continue
    const what = `${one.write.kind.resource} ${one.write.key}`
    races.set(what, [...(races.get(what) ?? []), one])
  }
  for (const [what, racers] of races) {
    const [lost] = racers.map(({ write }) => write.race)
    const outcomes = racers.map(({ outcome }) => outcome).sort((a, b) => Number(a === 'ok') - Number(b === 'ok'))
    assert.deepEqual(outcomes, [...racers.slice(1).map(() => lost), 'ok'], `one of those who race for ${what} wins`)
  }
}

/** The laws of metadata. */
function checkChange({ write, object }: Written, { object: stored, previous, revision }: Change): void {
  const { kind, effect, manager } = write
  if (effect === 'delete') {
    assert.equal(stored, undefined, `${write.key} is gone`)
    return
  }
  assert.deepEqual(object, stored)
  const { metadata } = stored
  if (previous) {
    assert.ok(Number(previous.metadata.resourceVersion) < revision)
    for (const fixed of ['uid', 'creationTimestamp', 'name', 'namespace']) assert.equal(metadata[fixed], previous.metadata[fixed], fixed)
  }
  const generation = previous ? previous.metadata.generation + Number(effect === 'spec') : 1
  if (metadata.generation !== (kind.counts ? generation : undefined)) assert.fail(`${describe(write)} made the generation ${metadata.generation}`)
  checkManagers(write, metadata.managedFields ?? [], manager)
}

function checkManagers({ kind, effect, request }: Write, entries: readonly Any[], manager: string): void {
  const ids = entries.map((entry) => `${entry.manager} ${entry.operation} ${entry.subresource ?? ''} ${entry.apiVersion}`)
  assert.equal(new Set(ids).size, ids.length, `no manager twice: ${ids}`)
  const operation = request.contentType === 'application/apply-patch+yaml' ? 'Apply' : 'Update'
  const id = `${manager} ${operation} ${effect === 'status' ? 'status' : ''} ${kind.apiVersion}`
  const entry = entries[ids.indexOf(id)]
  const field = effect === 'metadata' ? 'f:mark' : effect === 'status' ? 'f:status' : kind.changed
  if (!JSON.stringify(entry?.fieldsV1)?.includes(`"${field}"`)) assert.fail(`${id} does not own ${field} in ${JSON.stringify(entries)}`)
  if (effect !== 'spec') return
  const owners = entries.filter(({ subresource, fieldsV1 }) => !subresource && JSON.stringify(withoutLabels(fieldsV1)).includes(`"${kind.changed}"`))
  assert.deepEqual(
    owners.map((owner) => owner.manager),
    [manager],
    `the writer of ${kind.changed} is its only owner`,
  )
}

function withoutLabels(fields: Any): Any {
  return { ...fields, 'f:metadata': undefined }
}

function merge(body: object): Pick<ApiRequest, 'contentType' | 'body'> {
  return { contentType: 'application/merge-patch+json', body }
}

function pathOf(kind: HistoryKind, namespace: string, name: string): string {
  return `${collectionPath(kind, namespace)}/${name}`
}

function objectPath(kind: HistoryKind, { metadata }: Any): string {
  return pathOf(kind, metadata.namespace, metadata.name)
}

function describe({ request }: Write): string {
  return `${request.method} ${request.path} ${JSON.stringify(request.query ?? {})} ${request.contentType ?? ''} ${JSON.stringify(request.body)?.slice(0, 500)}`
}
