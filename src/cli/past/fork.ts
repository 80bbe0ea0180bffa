/**
 * Copies the objects of a revision into another cluster (L4): by pages, through its API, in several rounds, because some objects wait for what controllers make.
 * Owners are linked at the end, to the UIDs that the copies have.
 */
import type { ObjectRef, Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import { copyOf, kindsLeftOut, kindsToCopy, ownersOf, reasonToLeave } from './forkPlan.ts'
import { isUnreadable, type Kind, keyOf, listableKinds, nameOf, objectsAt, type PastObject } from './objects.ts'

export interface ForkReport {
  readonly created: number
  /** The new cluster had them already. */
  readonly there: number
  /** Numbers of objects, by reason. */
  readonly left: ReadonlyMap<string, number>
  readonly kindsLeft: readonly string[]
  /** One line each: an object that the new cluster refused. */
  readonly failed: readonly string[]
}

interface Copy {
  readonly kind: Kind
  readonly object: PastObject
}

const rounds = 20
const roundMs = 500
/** Objects that wait for another round: beyond, the next failure is final. */
const mostWaiting = 2_000
const mostFailed = 100

/** The revision to copy. */
export interface Past {
  readonly transport: Transport
  readonly revision: number
  /** Turns the failure of a read into the error of the command: the other cluster may fail, too. */
  readonly explain: (error: unknown) => unknown
}

export async function copyPast(from: Past, to: Transport, clock: Clock): Promise<ForkReport> {
  const fork = new Fork(to)
  const kinds = await listableKinds(from.transport).catch((error) => {
    throw from.explain(error)
  })
  const unreadable: string[] = []
  for (const kind of kindsToCopy(kinds)) {
    for await (const object of readable(from, kind, unreadable)) await fork.add({ kind, object })
    // What comes next needs namespaces and served kinds.
    if (kind.resource === 'customresourcedefinitions') await fork.retry(clock)
  }
  await fork.retry(clock)
  await fork.linkOwners()
  return { ...fork.report, kindsLeft: [...kindsLeftOut(kinds), ...unreadable] }
}

/** The objects of a kind; none of one without history, which is added to `unreadable`. */
async function* readable({ transport, revision, explain }: Past, kind: Kind, unreadable: string[]): AsyncGenerator<PastObject> {
  try {
    yield* objectsAt(transport, kind, revision)
  } catch (error) {
    if (!isUnreadable(error)) throw explain(error)
    unreadable.push(nameOf(kind))
  }
}

class Fork {
  readonly #to: Transport
  /** Old UID → new UID. */
  readonly #uids = new Map<string, string>()
  readonly #owned: { readonly kind: Kind; readonly ref: ObjectRef; readonly owners: ReturnType<typeof ownersOf> }[] = []
  readonly #left = new Map<string, number>()
  readonly #failed: string[] = []
  #waiting: Copy[] = []
  #created = 0
  #there = 0

  constructor(to: Transport) {
    this.#to = to
  }

  get report(): Omit<ForkReport, 'kindsLeft'> {
    return { created: this.#created, there: this.#there, left: this.#left, failed: this.#failed }
  }

  async add(copy: Copy): Promise<void> {
    const reason = reasonToLeave(copy.kind, copy.object)
    if (reason !== undefined) this.#left.set(reason, (this.#left.get(reason) ?? 0) + 1)
    else await this.#create(copy, this.#waiting.length < mostWaiting)
  }

  /** Tries what was refused again, until all is there or no round helps any more. */
  async retry(clock: Clock): Promise<void> {
    for (let round = 1; round <= rounds && this.#waiting.length > 0; round++) {
      await clock.sleep(roundMs)
      const waiting = this.#waiting
      this.#waiting = []
      for (const copy of waiting) await this.#create(copy, round < rounds)
    }
  }

  async #create({ kind, object }: Copy, mayWait: boolean): Promise<void> {
    const { uid = '' } = object.metadata
    const ref = refOf(object)
    const resources = createClient(this.#to).of<Unstructured>(kind)
    try {
      const created = await resources.create(copyOf(kind, object) as unknown as Unstructured)
      this.#created++
      this.#uids.set(uid, created.metadata.uid ?? '')
      if (ownersOf(object).length > 0) this.#owned.push({ kind, ref, owners: ownersOf(object) })
    } catch (error) {
      if (!isStatus(error)) throw error
      if (isStatus(error, 'AlreadyExists')) {
        this.#there++
        const there = await resources.get(ref).catch(() => undefined)
        if (there) this.#uids.set(uid, there.metadata.uid ?? '')
      } else if (mayWait) this.#waiting.push({ kind, object })
      else this.#fail(kind, keyOf(object), error)
    }
  }

  #fail(kind: Kind, key: string, error: unknown): void {
    if (this.#failed.length < mostFailed) this.#failed.push(`${nameOf(kind)} ${key}: ${messageOf(error)}`)
  }

  async linkOwners(): Promise<void> {
    for (const { kind, ref, owners } of this.#owned) {
      const resources = createClient(this.#to).of<Unstructured>(kind)
      const linked = owners.flatMap((owner) => {
        const uid = this.#uids.get(owner.uid)
        return uid === undefined ? [] : [{ ...owner, uid }]
      })
      if (linked.length === 0) continue
      const there = await resources.get(ref).catch(() => undefined)
      // A controller adopted it, or deleted it because it was one too many.
      if (!there || (there.metadata.ownerReferences?.length ?? 0) > 0) continue
      await resources.patch(ref, 'merge', { metadata: { ownerReferences: linked, resourceVersion: there.metadata.resourceVersion } }).catch((error) => {
        if (!isStatus(error)) throw error
        if (!isStatus(error, 'Conflict') && !isStatus(error, 'NotFound')) this.#fail(kind, keyOf(there as PastObject), error)
      })
    }
  }
}

function refOf({ metadata: { namespace, name = '' } }: PastObject): ObjectRef {
  return namespace === undefined ? { name } : { namespace, name }
}
