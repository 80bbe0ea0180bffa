/** Reads objects as they were (L4): the kinds that have a past, one object, and all objects of a kind by pages. */
import type { Frozen, Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ListOptions } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createDiscovery, type DiscoveredResource } from '#client/discovery/discovery'
import { listPages } from '#client/listAll'
import type { Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'

export type Kind = DiscoveredResource
export type PastObject = Frozen<Unstructured>

/** As kubectl writes it: deployments.apps. */
export const nameOf = ({ resource, group }: Pick<Kind, 'resource' | 'group'>): string => (group === '' ? resource : `${resource}.${group}`)

/** Each resource once, in its group's preferred version, if it can be listed. Groups whose server does not answer are left out. */
export async function listableKinds(transport: Transport): Promise<readonly Kind[]> {
  return (await discoverKinds(transport)).kinds
}

/** The same, with the reason for each group version whose server does not answer. */
export async function discoverKinds(transport: Transport): Promise<{ readonly kinds: readonly Kind[]; readonly failed: ReadonlyMap<string, Error> }> {
  const { resources, failed } = await createDiscovery(transport).resources()
  const known = new Set<string>()
  const kinds = resources.filter((kind) => {
    const name = nameOf(kind)
    if (known.has(name) || !kind.verbs.includes('list')) return false
    known.add(name)
    return true
  })
  return { kinds, failed }
}

/** A kind by plural, singular, short name or kind, with or without its group. @throws CommandError usage */
export function kindNamed(kinds: readonly Kind[], text: string): Kind {
  const wanted = text.toLowerCase()
  const found = kinds.find((kind) => {
    const names = [kind.resource, kind.singularName, kind.kind.toLowerCase(), ...kind.shortNames]
    return names.some((name) => name !== '' && (name === wanted || `${name}.${kind.group}` === wanted))
  })
  if (!found) throw new CommandError('usage', `the cluster has no kind "${text}"`)
  return found
}

/** The object in the state of a revision; undefined when it did not exist. */
export async function objectAt(
  transport: Transport,
  kind: Kind,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  revision: number,
): Promise<PastObject | undefined> {
  const fieldSelector = `metadata.name=${name.replace(/[\\,=]/g, '\\$&')}`
  for await (const object of objectsAt(transport, kind, revision, { fieldSelector, ...(kind.namespaced ? { namespace } : {}) })) return object
  return undefined
}

/** All objects of a kind in the order of their keys, a page at a time. @throws CommandError when the kind has no history */
export async function* objectsAt(transport: Transport, kind: Kind, revision: number, options: ListOptions = {}): AsyncGenerator<PastObject> {
  const resources = createClient(transport).of<Unstructured>(kind)
  for await (const page of listPages(resources, { ...options, resourceVersion: String(revision), resourceVersionMatch: 'Exact' })) {
    if (page.metadata.resourceVersion !== String(revision)) throw new NoHistory(kind)
    const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
    // Items of a list do not name their kind.
    for (const item of page.items) yield { ...item, kind: kind.kind, apiVersion }
  }
}

/** The server of the kind computes its objects, or knows no exact revision. */
export class NoHistory extends CommandError {
  constructor(kind: Kind) {
    super('unmetPrerequisite', `${nameOf(kind)} has no history: its server does not store it, or does not read at a revision`)
  }
}

/** Whether the kind cannot be listed by any user: its server has no history, or no lists. */
export const isUnlistable = (error: unknown): boolean => error instanceof NoHistory || isStatus(error, 'MethodNotAllowed') || isStatus(error, 'NotFound')

/** Whether a kind is skipped when all kinds are read: its server has no history, or refuses lists. */
export function isUnreadable(error: unknown): boolean {
  return isUnlistable(error) || ['Forbidden', 'ServiceUnavailable', 'BadRequest', 'Invalid'].some((reason) => isStatus(error, reason as 'Forbidden'))
}

/** Namespace and name; the order of keys in a list. */
export const keyOf = ({ metadata }: PastObject): string => (metadata.namespace ? `${metadata.namespace}/${metadata.name}` : (metadata.name ?? ''))
