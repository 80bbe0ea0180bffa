/** Decides which listeners a route is attached to (L3, pure). Upstream: apis/v1/shared_types.go (v1.6.3). */
import type { Frozen } from '#api/machinery/meta'
import { namesIntersect } from '../hostName.ts'
import { gatewayGroup, type ParentRef } from './kinds.ts'
import type { CompiledListener } from './listeners.ts'
import { fails, holds, type Outcome } from './outcome.ts'

export interface Attachment {
  readonly parentRef: Frozen<ParentRef>
  /** `namespace/name`. */
  readonly gateway: string
  /** Ids of listeners; empty: the route is not attached. */
  readonly listeners: readonly string[]
  readonly accepted: Outcome
}

export interface RouteHead {
  readonly kind: string
  readonly namespace: string
  /** In lower case; empty: all hosts. */
  readonly hosts: readonly string[]
}

export interface ParentKey {
  readonly kind: 'Gateway' | 'ListenerSet'
  /** `namespace/name`. */
  readonly key: string
}

/** The Gateway or ListenerSet that a route names; undefined: the parent is of another kind. */
export function parentKeyOf({ group = gatewayGroup, kind = 'Gateway', namespace, name }: Frozen<ParentRef>, ownNamespace: string): ParentKey | undefined {
  if (group !== gatewayGroup || (kind !== 'Gateway' && kind !== 'ListenerSet')) return undefined
  return { kind, key: `${namespace ?? ownNamespace}/${name}` }
}

/** A Gateway of this controller and those of its listeners that a parent of a route stands for. */
export interface Parent {
  readonly gateway: string
  readonly listeners: readonly CompiledListener[]
}

/** Parents that do not belong to this controller are left out. @param parentOf undefined: it belongs to another controller */
export function attachmentsOf(route: RouteHead, parents: readonly Frozen<ParentRef>[], parentOf: (parent: ParentKey) => Parent | undefined): Attachment[] {
  return parents.flatMap((parentRef) => {
    const key = parentKeyOf(parentRef, route.namespace)
    const parent = key && parentOf(key)
    return parent ? [{ parentRef, gateway: parent.gateway, ...attach(route, parentRef, parent.listeners) }] : []
  })
}

function attach(
  { kind, namespace, hosts }: RouteHead,
  { sectionName, port }: Frozen<ParentRef>,
  all: readonly CompiledListener[],
): Pick<Attachment, 'listeners' | 'accepted'> {
  const named = all.filter((one) => one.isAccepted && (!sectionName || one.name === sectionName) && (!port || one.port === port))
  if (named.length === 0) return none('NoMatchingParent', 'The parent has no accepted listener of this name and port')
  const allowing = named.filter((one) => one.kinds.includes(kind) && one.admitsNamespace(namespace))
  if (allowing.length === 0) return none('NotAllowedByListeners', 'No listener admits routes of this kind and namespace')
  const fitting = allowing.filter(({ host }) => hosts.some((one) => namesIntersect(host, one)))
  if (fitting.length === 0) return none('NoMatchingListenerHostname', 'No listener has a host of the route')
  return { listeners: fitting.map(({ id }) => id), accepted: holds('Accepted') }
}

function none(reason: string, message: string): Pick<Attachment, 'listeners' | 'accepted'> {
  return { listeners: [], accepted: fails('Accepted', reason, message) }
}
