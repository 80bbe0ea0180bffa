/**
 * The addresses of the pods that a peer's selector selects (L3), pure: one group for all rules with the same selector. A group of named ports holds each pod's
 * address with the numbers that the ports have in this pod. Elements are counted, because two pods may report one address for a moment.
 */
import type { LabelMap } from '#api/machinery/labelSelector'
import type { PeerSelector } from './compilePolicy.ts'
import { type Family, familyOf, type PodFacts, type Protocol } from './facts.ts'

/** The named ports of a rule with one protocol. */
export interface GroupPort {
  readonly protocol: Protocol
  readonly names: ReadonlySet<string>
}

type Elements = ReadonlyMap<string, ''>

export class PeerGroup {
  readonly id: number
  readonly key: string
  readonly selector: PeerSelector
  readonly port: GroupPort | undefined
  /** Rules that refer to the group. */
  users = 0
  readonly #counts: Readonly<Record<Family, Map<string, number>>> = { v4: new Map(), v6: new Map() }
  readonly #elements: Partial<Record<Family, Elements>> = {}

  constructor(id: number, selector: PeerSelector, port?: GroupPort) {
    this.id = id
    this.selector = selector
    this.port = port
    this.key = groupKey(selector, port)
  }

  selects(pod: PodFacts, namespaceLabels: LabelMap | undefined): boolean {
    const { namespace, pods } = this.selector
    if (namespace !== undefined ? pod.namespace !== namespace : !this.selectsNamespace(namespaceLabels)) return false
    return pods.matches(pod.labels)
  }

  /** An unknown namespace is selected by no selector. */
  selectsNamespace(labels: LabelMap | undefined): boolean {
    return labels !== undefined && (this.selector.namespaces?.matches(labels) ?? false)
  }

  /** @returns whether an element is new */
  add(pod: PodFacts): boolean {
    let changed = false
    for (const [family, element] of this.#elementsOf(pod)) {
      const count = this.#counts[family].get(element) ?? 0
      this.#counts[family].set(element, count + 1)
      if (count > 0) continue
      delete this.#elements[family]
      changed = true
    }
    return changed
  }

  /** @returns whether an element is gone */
  remove(pod: PodFacts): boolean {
    let changed = false
    for (const [family, element] of this.#elementsOf(pod)) {
      const count = this.#counts[family].get(element) ?? 0
      if (count > 1) this.#counts[family].set(element, count - 1)
      else changed = this.#counts[family].delete(element) || changed
      if (count === 1) delete this.#elements[family]
    }
    return changed
  }

  /** @param port for a group of named ports */
  has(address: string, port?: number): boolean {
    return this.#counts[familyOf(address)].has(this.port ? `${address} . ${port}` : address)
  }

  /** The same map until an element is added or removed. */
  elements(family: Family): Elements {
    const elements = this.#elements[family] ?? new Map([...this.#counts[family].keys()].map((element) => [element, '']))
    this.#elements[family] = elements
    return elements
  }

  *#elementsOf({ addresses, ports }: PodFacts): Generator<readonly [Family, string]> {
    const wanted = this.port
    if (!wanted) {
      for (const address of addresses) yield [familyOf(address), address]
      return
    }
    const numbers = new Set(ports.filter(({ name, protocol }) => wanted.names.has(name) && protocol === wanted.protocol).map(({ port }) => port))
    for (const address of addresses) for (const number of numbers) yield [familyOf(address), `${address} . ${number}`]
  }
}

export function groupKey({ key }: PeerSelector, port: GroupPort | undefined): string {
  return port ? `${port.protocol} ${[...port.names].sort().join()} ${key}` : key
}
