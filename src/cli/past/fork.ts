/** Copies the objects of a revision into another cluster (L4), by pages. */
import type { Clock } from '#base/clock'
import type { Transport } from '#client/transport'
import { Copier } from './copier.ts'
import { copyOf, kindsLeftOut, kindsToCopy, ownersOf, reasonToLeave } from './forkPlan.ts'
import { isUnreadable, type Kind, listableKinds, nameOf, objectsAt, type PastObject } from './objects.ts'

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

/** The revision to copy. */
export interface Past {
  readonly transport: Transport
  readonly revision: number
  /** Turns the failure of a read into the error of the command: the other cluster may fail, too. */
  readonly explain: (error: unknown) => unknown
}

/** Copies the objects of a revision, except those that belong to the old cluster itself. @throws what `from.explain` makes of a failed read */
export async function copyPast(from: Past, to: Transport, clock: Clock): Promise<ForkReport> {
  const copier = new Copier(to, clock)
  const left = new Map<string, number>()
  const kinds = await listableKinds(from.transport).catch((error) => {
    throw from.explain(error)
  })
  const unreadable: string[] = []
  for (const kind of kindsToCopy(kinds)) {
    for await (const object of readable(from, kind, unreadable)) {
      const reason = reasonToLeave(kind, object)
      if (reason !== undefined) left.set(reason, (left.get(reason) ?? 0) + 1)
      else await copier.add({ kind, draft: copyOf(kind, object), uid: object.metadata.uid ?? '', owners: ownersOf(object) })
    }
    // What comes next needs namespaces and served kinds.
    if (kind.resource === 'customresourcedefinitions') await copier.retry()
  }
  await copier.retry()
  await copier.linkOwners()
  const { created, thereCount, failed } = copier.report
  return { created, there: thereCount, failed, left, kindsLeft: [...kindsLeftOut(kinds), ...unreadable] }
}

/** The objects of a kind; none of one without history, which is added to `unreadable`. */
export async function* readable({ transport, revision, explain }: Past, kind: Kind, unreadable: string[]): AsyncGenerator<PastObject> {
  try {
    yield* objectsAt(transport, kind, revision)
  } catch (error) {
    if (!isUnreadable(error)) throw explain(error)
    unreadable.push(nameOf(kind))
  }
}
