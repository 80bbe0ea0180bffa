/**
 * Decides which ListenerSets add listeners to a Gateway (L3, pure), and what their statuses say. A listener whose place another one has already is refused: the
 * Gateway's own come first, then those of the older set. Upstream: apis/v1/listenerset_types.go (v1.6.3).
 */
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { type Gateway, gatewayGroup, type Listener, type ListenerSet } from './kinds.ts'
import { type CompiledListener, compileListener, compileListeners, namespacesOf } from './listeners.ts'
import { fails, holds, isTrue, type Outcome } from './outcome.ts'
import { protocolOf } from './routeKinds.ts'
import type { ClusterView } from './view.ts'

export interface CompiledSet {
  /** `namespace/name`. */
  readonly key: string
  readonly set: Frozen<ListenerSet>
  /** Empty when the Gateway does not allow the set. */
  readonly listeners: readonly CompiledListener[]
  readonly accepted: Outcome
  readonly programmed: Outcome
}

export interface CompiledGateway {
  /** The Gateway's own, then those of its sets. */
  readonly listeners: readonly CompiledListener[]
  readonly sets: readonly CompiledSet[]
}

/** The most listeners of a Gateway with its sets. */
const maxListeners = 1000

/** `namespace/name` of the Gateway that a set names; undefined: its parent is of another kind. */
export function gatewayOfSet({ metadata, spec }: Frozen<ListenerSet>): string | undefined {
  const { group = gatewayGroup, kind = 'Gateway', namespace = metadata.namespace, name } = spec.parentRef ?? { name: '' }
  return group === gatewayGroup && kind === 'Gateway' ? `${namespace}/${name}` : undefined
}

/** @param sets that name the Gateway, in any order */
export function compileGateway(gateway: Frozen<Gateway>, sets: readonly Frozen<ListenerSet>[], view: ClusterView): CompiledGateway {
  const own = compileListeners(gateway, view)
  const places = new Places(gateway.spec.listeners ?? [])
  const { from = 'None', selector } = gateway.spec.allowedListeners?.namespaces ?? {}
  const allowed = namespacesOf(gateway.metadata.namespace ?? '', { from, ...(selector ? { selector } : {}) }, view)
  const isRefused = (gateway.spec.addresses?.length ?? 0) > 0
  const compiled = [...sets]
    .sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))
    .map((set): CompiledSet => {
      const { namespace = '', name = '' } = set.metadata
      const key = `${namespace}/${name}`
      if (!allowed.admits(namespace)) return refused(key, set, 'NotAllowed', 'The Gateway does not allow ListenerSets of this namespace')
      if (isRefused) return refused(key, set, 'ParentNotAccepted', 'The Gateway is not accepted')
      try {
        const owner = { kind: 'ListenerSet', namespace, name } as const
        const listeners = (set.spec.listeners ?? []).map((listener) => compileListener(owner, listener, places.take(listener), view))
        return { key, set, listeners, ...outcomesOf(listeners) }
      } catch (error) {
        // It may be of another tenant than the Gateway, which is served all the same.
        return refused(key, set, 'Invalid', `The ListenerSet cannot be read: ${messageOf(error)}`)
      }
    })
  return { listeners: [...own, ...compiled.flatMap(({ listeners }) => listeners)], sets: compiled }
}

const ageOf = ({ metadata: { creationTimestamp = '', namespace, name } }: Frozen<ListenerSet>) => `${creationTimestamp} ${namespace}/${name}`

function refused(key: string, set: Frozen<ListenerSet>, reason: string, message: string): CompiledSet {
  return { key, set, listeners: [], accepted: fails('Accepted', reason, message), programmed: fails('Programmed', reason, message) }
}

function outcomesOf(listeners: readonly CompiledListener[]): Pick<CompiledSet, 'accepted' | 'programmed'> {
  const names = listeners.filter(({ isServed }) => !isServed).map(({ name }) => name)
  if (names.length === 0 && listeners.length > 0) return { accepted: holds('Accepted'), programmed: holds('Programmed') }
  const [reason, message] = ['ListenersNotValid', `Listeners that are not served: ${names.join(', ')}`]
  if (names.length < listeners.length) return { accepted: holds('Accepted', message, reason), programmed: holds('Programmed', message) }
  return { accepted: fails('Accepted', reason, message), programmed: fails('Programmed', reason, message) }
}

/** The protocols and hosts of ports that listeners have taken. */
class Places {
  readonly #ports = new Map<number, { readonly protocol: string; readonly hosts: Set<string> }>()
  #count: number

  constructor(listeners: readonly Frozen<Listener>[]) {
    this.#count = listeners.length
    for (const listener of listeners) this.#add(listener)
  }

  /** Takes the place of a listener, unless another one has it. The message does not name the other one, which may be of another tenant. */
  take(listener: Frozen<Listener>): Outcome {
    const there = this.#ports.get(listener.port)
    const free = fails('Conflicted', 'NoConflicts', '')
    if (there && there.protocol !== listener.protocol) return holds('Conflicted', 'An older listener has another protocol on the same port', 'ProtocolConflict')
    if (there?.hosts.has(hostOf(listener))) return holds('Conflicted', 'An older listener has the same host and port', 'HostnameConflict')
    if (this.#count >= maxListeners) return holds('Conflicted', `The Gateway and its sets have ${maxListeners} listeners`, 'TooManyListeners')
    this.#count++
    this.#add(listener)
    return free
  }

  /** A listener that is never served keeps no place from others. */
  #add(listener: Frozen<Listener>): void {
    if (!protocolOf(listener.protocol)) return
    const there = this.#ports.get(listener.port)
    if (there) there.hosts.add(hostOf(listener))
    else this.#ports.set(listener.port, { protocol: listener.protocol, hosts: new Set([hostOf(listener)]) })
  }
}

const hostOf = ({ hostname = '' }: Frozen<Listener>) => hostname.toLowerCase()

/** A set that counts as attached to its Gateway. */
export function isAttached({ accepted }: CompiledSet): boolean {
  return isTrue(accepted)
}
