/**
 * What is decided about a route (L3, pure): where it is attached, what its rules compile to, and the conditions that say so. Whatever the object holds, this
 * does not throw: the API server checks objects, but a user's definitions may check less.
 */
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { type Attachment, attachmentsOf, type Parent, type ParentKey } from './attachments.ts'
import type { AttachedRoute } from './gatewayTable.ts'
import { type CompiledRules, compileHttpRules } from './httpRules.ts'
import type { HttpRoute, ParentRef } from './kinds.ts'
import { fails } from './outcome.ts'
import type { ClusterView } from './view.ts'

export interface RouteVerdict {
  /** A route of another kind is read as an HTTPRoute. */
  readonly route: Frozen<HttpRoute>
  readonly attachments: readonly Attachment[]
  readonly rules: CompiledRules
}

type ParentOf = (parent: ParentKey) => Parent | undefined

/** Undefined: no parent belongs to this controller. @param parentOf undefined: the parent belongs to another controller */
export function judgeRoute(kind: string, route: Frozen<HttpRoute>, view: ClusterView, parentOf: ParentOf): RouteVerdict | undefined {
  try {
    const attachments = attachmentsTo(kind, route, route.spec.parentRefs ?? [], parentOf)
    return attachments.length > 0 ? { route, attachments, rules: compileHttpRules(route, view, kind) } : undefined
  } catch (error) {
    return unreadable(kind, route, messageOf(error), parentOf)
  }
}

function attachmentsTo(kind: string, route: Frozen<HttpRoute>, parents: readonly Frozen<ParentRef>[], parentOf: ParentOf): Attachment[] {
  return attachmentsOf({ kind, namespace: route.metadata.namespace ?? '', hosts: hostsOf(route) }, parents, parentOf)
}

/** Attached nowhere, with a condition for each parent that can be read. */
function unreadable(kind: string, route: Frozen<HttpRoute>, reason: string, parentOf: ParentOf): RouteVerdict | undefined {
  const parents: unknown = route.spec?.parentRefs
  const readable = (Array.isArray(parents) ? parents : []).filter(isParentRef)
  const bare: Frozen<HttpRoute> = { ...route, spec: {} }
  const accepted = fails('Accepted', 'UnsupportedValue', `The route cannot be read: ${reason}`)
  const attachments = attachmentsTo(kind, bare, readable, parentOf).map((one) => ({ ...one, listeners: [], accepted }))
  const resolved = fails('ResolvedRefs', 'UnsupportedValue', accepted.message)
  return attachments.length > 0 ? { route: bare, attachments, rules: { matches: [], accepted, resolved, partiallyInvalid: undefined } } : undefined
}

/** With fields that a status can repeat. */
function isParentRef(value: unknown): value is Frozen<ParentRef> {
  if (typeof value !== 'object' || value === null) return false
  const { name, namespace, group, kind, sectionName, port } = value as Readonly<Record<string, unknown>>
  const areTexts = [namespace, group, kind, sectionName].every((one) => one === undefined || typeof one === 'string')
  return typeof name === 'string' && areTexts && (port === undefined || typeof port === 'number')
}

function hostsOf({ spec }: Frozen<HttpRoute>): readonly string[] {
  return spec.hostnames?.length ? spec.hostnames.map((host) => host.toLowerCase()) : ['']
}

/** The form that the table takes. */
export function attachedOf(key: string, { route, attachments, rules }: RouteVerdict): AttachedRoute {
  const listeners = new Map<string, Set<string>>()
  for (const { gateway, listeners: names } of attachments) {
    if (names.length > 0) listeners.set(gateway, new Set([...(listeners.get(gateway) ?? []), ...names]))
  }
  return { key, hosts: hostsOf(route), matches: rules.matches, listeners }
}
