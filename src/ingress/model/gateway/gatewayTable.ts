/**
 * The routes of all Gateways (L3, pure). The listener with the most specific host takes a request, and only its routes answer. Among these the most specific
 * host comes first, then the path, then the precedence of the matches. A change touches only the places that the changed route names.
 */
import { ownValue } from '#base/bareMap'
import { coveringNames } from '../hostName.ts'
import { getOrMake, HostRoutes } from '../hostRoutes.ts'
import type { Asked, Route } from '../route.ts'
import type { GatewayRule, RuleMatch } from './httpRules.ts'
import type { CompiledListener } from './listeners.ts'
import type { GatewayProtocol } from './routeKinds.ts'

/** A compiled route with the listeners of each Gateway that it is attached to. */
export interface AttachedRoute {
  readonly key: string
  readonly hosts: readonly string[]
  readonly matches: readonly RuleMatch[]
  readonly listeners: ReadonlyMap<string, ReadonlySet<string>>
}

interface Entry extends RuleMatch {
  readonly listeners: ReadonlySet<string>
}

interface Place {
  readonly hostKey: string
  /** Names the claim: one match of one route. */
  readonly id: string
  readonly entry: Entry
}

interface ListenersOfPort {
  readonly protocol: GatewayProtocol
  readonly byHost: ReadonlyMap<string, CompiledListener>
}

/** Places between two pauses of an update. */
const stride = 200
/** No header has a line break. */
const missing = '\n'
/** Nothing asks which route has won. */
const untold = new Set<string>()

export class GatewayTable {
  readonly #routes = new Map<string, AttachedRoute>()
  readonly #hosts = new Map<string, HostRoutes<Entry>>()
  /** By Gateway, then by port. */
  readonly #gateways = new Map<string, ReadonlyMap<number, ListenersOfPort>>()
  /** By Gateway and listener, the routes that are attached. */
  readonly #attached = new Map<string, Set<string>>()

  /** @param listeners undefined: the Gateway is gone */
  setListeners(gateway: string, listeners: readonly CompiledListener[] | undefined): void {
    if (!listeners) {
      this.#gateways.delete(gateway)
      return
    }
    const ports = new Map<number, { protocol: GatewayProtocol; byHost: Map<string, CompiledListener> }>()
    for (const listener of listeners) {
      const { port, protocol } = listener
      if (listener.isServed && protocol) getOrMake(ports, port, () => ({ protocol, byHost: new Map() })).byHost.set(listener.host, listener)
    }
    this.#gateways.set(gateway, ports)
  }

  /** The ports that the Gateway answers on. */
  portsOf(gateway: string): ReadonlyMap<number, { readonly protocol: GatewayProtocol }> {
    return this.#gateways.get(gateway) ?? new Map()
  }

  /** The listener that a host belongs to: the one with the most specific name. */
  listenerOf(gateway: string, port: number, host: string): CompiledListener | undefined {
    const byHost = this.#gateways.get(gateway)?.get(port)?.byHost
    if (!byHost) return undefined
    for (const name of coveringNames(host)) {
      const found = byHost.get(name)
      if (found) return found
    }
    return undefined
  }

  /** @param random chooses among backends: from 0 up to 1 */
  route(gateway: string, listener: string, asked: Asked, random: () => number): Route | undefined {
    const accepts = acceptance(listener, asked)
    for (const name of coveringNames(asked.host)) {
      const found = this.#hosts.get(`${gateway} ${name}`)?.match(asked.path, accepts)
      if (found) return routeOf(found, random)
    }
    return undefined
  }

  get(key: string): AttachedRoute | undefined {
    return this.#routes.get(key)
  }

  attachedCount(gateway: string, listener: string): number {
    return this.#attached.get(`${gateway} ${listener}`)?.size ?? 0
  }

  /** Takes one changed route; undefined: it is gone. Yields now and then, so that the caller can pause; no place is without its route meanwhile. */
  *update(key: string, now: AttachedRoute | undefined): Generator<void> {
    const before = this.#routes.get(key)
    if (now) this.#routes.set(key, now)
    else this.#routes.delete(key)
    const kept = new Set<string>()
    let steps = 0
    for (const { hostKey, id, entry } of placesOf(now)) {
      const routes = getOrMake(this.#hosts, hostKey, () => new HostRoutes<Entry>())
      routes.claimants.add(key)
      routes.ensure(entry.pattern).set({ key: id, age: entry.rank }, entry, untold)
      kept.add(placeKey(hostKey, id, entry))
      if (++steps % stride === 0) yield
    }
    for (const { hostKey, id, entry } of placesOf(before)) {
      if (kept.has(placeKey(hostKey, id, entry))) continue
      this.#release(hostKey, id, entry)
      if (++steps % stride === 0) yield
    }
    const hostKeys = new Set(hostKeysOf(now))
    for (const hostKey of hostKeysOf(before)) {
      const routes = this.#hosts.get(hostKey)
      if (!routes || hostKeys.has(hostKey)) continue
      routes.claimants.delete(key)
      if (routes.claimants.size === 0) this.#hosts.delete(hostKey)
    }
    this.#count(key, before, now)
  }

  #release(hostKey: string, id: string, { pattern }: Entry): void {
    const routes = this.#hosts.get(hostKey)
    routes?.at(pattern)?.delete(id, untold)
    routes?.tidy(pattern)
  }

  #count(key: string, before: AttachedRoute | undefined, now: AttachedRoute | undefined): void {
    for (const place of listenerKeys(before)) {
      const attached = this.#attached.get(place)
      attached?.delete(key)
      if (attached?.size === 0) this.#attached.delete(place)
    }
    for (const place of listenerKeys(now)) getOrMake(this.#attached, place, () => new Set()).add(key)
  }
}

function* placesOf(route: AttachedRoute | undefined): Generator<Place> {
  if (!route) return
  for (const [gateway, listeners] of route.listeners) {
    const entries = route.matches.map((match) => ({ ...match, listeners }))
    for (const host of route.hosts) for (const [at, entry] of entries.entries()) yield { hostKey: `${gateway} ${host}`, id: `${route.key} ${at}`, entry }
  }
}

function hostKeysOf(route: AttachedRoute | undefined): string[] {
  return [...(route?.listeners.keys() ?? [])].flatMap((gateway) => route?.hosts.map((host) => `${gateway} ${host}`) ?? [])
}

function listenerKeys(route: AttachedRoute | undefined): string[] {
  return [...(route?.listeners ?? [])].flatMap(([gateway, listeners]) => [...listeners].map((listener) => `${gateway} ${listener}`))
}

const placeKey = (hostKey: string, id: string, { pattern }: Entry) => `${hostKey} ${id} ${pattern.isExact ? '' : '*'}${pattern.path}`

function acceptance(listener: string, { method, headers, url, path }: Asked): (entry: Entry) => boolean {
  let parameters: URLSearchParams | undefined
  const parameter = (name: string) => {
    parameters ??= new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
    return parameters.get(name)
  }
  return (entry) =>
    entry.listeners.has(listener) &&
    (entry.method === undefined || entry.method === method) &&
    (entry.grpcMethod === undefined || /^\/[^/]+\/([^/]+)$/.exec(path)?.[1] === entry.grpcMethod) &&
    entry.headers.every(([name, value]) => String(ownValue(headers, name) ?? missing) === value) &&
    entry.queryParams.every(([name, value]) => parameter(name) === value)
}

function routeOf({ rule, pattern }: Entry, random: () => number): Route {
  const chosen = chosenBackend(rule, random)
  return {
    backend: chosen?.backend,
    pattern,
    ...rule.changes,
    ...chosen?.changes,
    requestHeaders: both(rule.changes.requestHeaders, chosen?.changes.requestHeaders),
    responseHeaders: both(rule.changes.responseHeaders, chosen?.changes.responseHeaders),
    mirrors: both(rule.changes.mirrors, chosen?.changes.mirrors)?.filter(({ share }) => share >= 1 || random() < share),
    timeoutMs: rule.timeoutMs,
    backendTimeoutMs: rule.backendTimeoutMs,
  }
}

function both<T>(a: readonly T[] | undefined, b: readonly T[] | undefined): readonly T[] | undefined {
  return a && b ? [...a, ...b] : (a ?? b)
}

function chosenBackend({ backends, weight }: GatewayRule, random: () => number) {
  if (weight <= 0) return undefined
  let rest = random() * weight
  for (const one of backends) {
    rest -= one.weight
    if (rest < 0) return one
  }
  return undefined
}
