/** Creates exported objects in a cluster (L4): in the order of the file, and kinds that the file defines when the cluster serves them. */
import type { Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { createClient } from '#client/clientOverTransport'
import { createDiscovery } from '#client/discovery/discovery'
import type { Transport } from '#client/transport'
import { Copier, type CopyReport, FirstLines, lineOf } from '../past/copier.ts'
import { type Draft, ownersOf } from '../past/forkPlan.ts'
import type { Kind, PastObject } from '../past/objects.ts'

const rounds = 20
const roundMs = 500

export interface Imported {
  /** Where it is in the file, for messages. */
  readonly line: number
  readonly object: Draft
}

/** @param objects in the order of their creation */
export async function importObjects(to: Transport, clock: Clock, objects: AsyncIterable<Imported>): Promise<CopyReport> {
  const copier = new Copier(to, clock)
  const kinds = createKinds(to)
  const defined = new Set<string>()
  let defines = false
  for await (const { line, object } of objects) {
    if (defines && !isDefinition(object)) {
      // What comes next needs namespaces and served kinds.
      await copier.retry()
      defines = false
    }
    const kind = (await kinds.of(object)) ?? (defined.has(groupKindOf(object)) ? await kinds.waitFor(object, clock) : undefined)
    if (!kind) copier.fail(`line ${line}: the cluster serves no ${object.kind} of ${object.apiVersion}`)
    else await copier.add({ kind, draft: draftOf(object), uid: uidOf(object), owners: ownersOf(object as unknown as PastObject) })
    if (isDefinition(object)) {
      defines = true
      defined.add(definedBy(object))
    }
  }
  await copier.retry()
  await copier.linkOwners()
  return copier.report
}

/**
 * Asks the cluster what it would answer. An object of a namespace or kind that the file itself makes cannot be asked about: it counts as one that would be created.
 */
export async function tryImport(to: Transport, objects: AsyncIterable<Imported>): Promise<CopyReport> {
  const kinds = createKinds(to)
  const made = { namespaces: new Set<string>(), kinds: new Set<string>() }
  const [there, failed] = [new FirstLines(), new FirstLines()]
  let created = 0
  for await (const { line, object } of objects) {
    const { name = '', namespace = '' } = object.metadata
    const kind = await kinds.of(object)
    if (isDefinition(object)) made.kinds.add(definedBy(object))
    if (!kind || made.namespaces.has(namespace)) {
      if (kind || made.kinds.has(groupKindOf(object))) created++
      else failed.add(`line ${line}: the cluster serves no ${object.kind} of ${object.apiVersion}`)
      continue
    }
    try {
      await createClient(to)
        .of<Unstructured>(kind)
        .create(draftOf(object) as unknown as Unstructured, { dryRun: true })
      created++
      if (kind.group === '' && kind.resource === 'namespaces') made.namespaces.add(name)
    } catch (error) {
      if (!isStatus(error)) throw error
      if (isStatus(error, 'AlreadyExists')) there.add(lineOf(kind, object))
      else failed.add(`${lineOf(kind, object)}: ${messageOf(error)}`)
    }
  }
  return { created, thereCount: there.count, there: there.lines, failed: failed.lines }
}

const isDefinition = ({ kind }: Draft) => kind === 'CustomResourceDefinition' || kind === 'Namespace'

function definedBy({ spec }: Draft): string {
  const names = spec?.names as { readonly kind?: string } | undefined
  return `${spec?.group} ${names?.kind}`
}

const groupKindOf = ({ apiVersion, kind }: Draft) => `${String(apiVersion).split('/')[0]} ${kind}`

const uidOf = ({ metadata }: Draft) => String(metadata.uid ?? '')

/** UIDs are the cluster's, and owners are linked when all objects are there. */
function draftOf({ metadata: { uid: _, ownerReferences: __, ...metadata }, ...rest }: Draft): Draft {
  return { ...rest, metadata }
}

function createKinds(to: Transport) {
  const discovery = createDiscovery(to)
  const isNot = new Set<string>()
  const of = async ({ apiVersion, kind }: Draft): Promise<Kind | undefined> => {
    const { resources } = await discovery.resources()
    return resources.find(
      (one) => one.kind === kind && (one.group === '' ? one.version : `${one.group}/${one.version}`) === apiVersion && one.verbs.includes('create'),
    )
  }
  /** Some time after its definition is there, a kind is served. One that was waited for is not waited for again. */
  const waitFor = async (object: Draft, clock: Clock): Promise<Kind | undefined> => {
    const name = `${object.apiVersion} ${object.kind}`
    for (let round = 0; round < rounds && !isNot.has(name); round++) {
      await clock.sleep(roundMs)
      discovery.invalidate()
      const kind = await of(object)
      if (kind) return kind
    }
    isNot.add(name)
    return undefined
  }
  return { of, waitFor }
}
