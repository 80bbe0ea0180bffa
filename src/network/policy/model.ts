/**
 * The policies of a node's pods (L3), pure: takes changes of pods, namespaces and policies one by one, and touches only what each concerns. Policies that
 * select no pod of the node are kept, and have no groups. Work over many pods is a generator, whose steps are short.
 * Upstream: sigs.k8s.io/kube-network-policies decides packet by packet; here decisions are made beforehand, for the kernel.
 */
import type { LabelMap } from '#api/machinery/labelSelector'
import type { CompiledPolicy, Direction, PeerSelector } from './compilePolicy.ts'
import { type PodFacts, sameFacts } from './facts.ts'
import { type ActivePolicy, directions, type IsolatedPod, type Isolation, Isolations } from './isolations.ts'
import { type GroupPort, groupKey, PeerGroup } from './peerGroup.ts'
import { type Connection, groupsOf, termMatches, termsOf } from './terms.ts'

interface HeldPolicy {
  readonly compiled: CompiledPolicy
  /** The node's pods that the policy selects. */
  readonly selected: Set<LocalPod>
  active: ActivePolicy | undefined
}

interface LocalPod extends IsolatedPod {
  facts: PodFacts
  /** The policies that select the pod. */
  readonly policies: Set<HeldPolicy>
}

type Work = Generator<undefined, void>
const stepSize = 200

export class PolicyModel {
  /** Grows with each change of the rules. */
  version = 0
  readonly #isLocal: (pod: PodFacts) => boolean
  readonly #released: (address: string) => void
  readonly #namespaces = new Map<string, LabelMap>()
  readonly #pods = new Map<string, PodFacts>()
  readonly #podsByNamespace = new Map<string, Map<string, PodFacts>>()
  readonly #policies = new Map<string, Map<string, HeldPolicy>>()
  readonly #local = new Map<string, Map<string, LocalPod>>()
  readonly #groups = new Map<string, PeerGroup>()
  readonly #groupsByNamespace = new Map<string, Set<PeerGroup>>()
  /** Groups that select namespaces by their labels. */
  readonly #wideGroups = new Set<PeerGroup>()
  /** Groups whose members are not counted yet. */
  readonly #newGroups: PeerGroup[] = []
  readonly #isolations = new Isolations(() => this.#nextId++)
  /** Local pods whose isolation may have changed: it is found once after many changes, because it is as long as the list of the pod's policies. */
  readonly #unsettled = new Set<LocalPod>()
  #nextId = 1

  /** @param isLocal whether the policies of this pod are enforced here @param released is called with each address that a local pod no longer has */
  constructor(isLocal: (pod: PodFacts) => boolean, released: (address: string) => void = () => {}) {
    this.#isLocal = isLocal
    this.#released = released
  }

  /** Undefined labels: the namespace is deleted. */
  *updateNamespace(name: string, labels: LabelMap | undefined): Work {
    const before = this.#namespaces.get(name)
    if (labels) this.#namespaces.set(name, labels)
    else this.#namespaces.delete(name)
    for (const group of this.#wideGroups) {
      const [was, is] = [group.selectsNamespace(before), group.selectsNamespace(labels)]
      if (was === is) continue
      for (const pod of this.#podsByNamespace.get(name)?.values() ?? []) {
        if (group.selector.pods.matches(pod.labels)) this.#count(is ? group.add(pod) : group.remove(pod))
      }
      yield
    }
  }

  /** Undefined facts: the pod is deleted. */
  *updatePod(key: string, facts: PodFacts | undefined): Work {
    const before = this.#pods.get(key)
    if (before && facts && sameFacts(before, facts)) return
    const namespace = facts?.namespace ?? before?.namespace
    if (namespace === undefined) return
    this.#keepPod(key, namespace, facts)
    const labels = this.#namespaces.get(namespace)
    for (const groups of [this.#groupsByNamespace.get(namespace) ?? [], this.#wideGroups]) {
      for (const group of groups) {
        // The addition comes first, so that an element which stays does not change.
        const added = facts !== undefined && group.selects(facts, labels) && group.add(facts)
        const removed = before !== undefined && group.selects(before, labels) && group.remove(before)
        this.#count(added || removed)
        yield
      }
    }
    if (before && this.#isLocal(before) && !(facts && this.#isLocal(facts))) this.#dropLocal(before)
    if (facts && this.#isLocal(facts)) this.#keepLocal(facts)
    for (const address of before && this.#isLocal(before) ? before.addresses : []) if (!facts?.addresses.includes(address)) this.#released(address)
    yield* this.#fillNewGroups()
  }

  /** Undefined: the policy is deleted. */
  *updatePolicy(key: string, namespace: string, compiled: CompiledPolicy | undefined): Work {
    const ofNamespace = childMap(this.#policies, namespace)
    const before = ofNamespace.get(key)
    if (!before && !compiled) return
    if (compiled) {
      const held: HeldPolicy = { compiled, selected: new Set(), active: undefined }
      ofNamespace.set(key, held)
      for (const pod of this.#local.get(namespace)?.values() ?? []) {
        if (compiled.target.matches(pod.facts.labels)) select(held, pod)
      }
      this.#activate(held)
      for (const pod of held.selected) this.#unsettled.add(pod)
    } else ofNamespace.delete(key)
    if (before) {
      for (const pod of before.selected) {
        pod.policies.delete(before)
        this.#unsettled.add(pod)
      }
      this.#deactivate(before)
    }
    if (ofNamespace.size === 0) this.#policies.delete(namespace)
    yield* this.#fillNewGroups()
  }

  /** Must follow updates before the model is read. @param changed is called with each local pod whose isolation changed */
  *settle(changed?: (podKey: string) => void): Work {
    for (const pod of this.#unsettled) {
      this.#unsettled.delete(pod)
      if (this.#isolate(pod)) changed?.(pod.facts.key)
      yield
    }
  }

  /** @returns each isolated address of the direction with its isolation */
  isolated(direction: Direction): Iterable<readonly [string, Isolation]> {
    return this.#isolations.isolated(direction)
  }

  isolations(): Iterable<Isolation> {
    return this.#isolations.all()
  }

  *activePolicies(): Generator<ActivePolicy> {
    for (const held of this.#policies.values()) for (const { active } of held.values()) if (active) yield active
  }

  groups(): Iterable<PeerGroup> {
    return this.#groups.values()
  }

  /** Whether the policies of the address in the direction allow the connection. An address without isolation allows all. */
  allows(direction: Direction, connection: Connection): boolean {
    const { source, destination } = connection
    const isolation = this.#isolations.ofAddress(direction, direction === 'ingress' ? destination : source)
    if (!isolation || source === destination) return true
    return isolation.policies.some(({ terms }) => terms[direction]?.some((term) => termMatches(term, direction, connection)))
  }

  #count(changed: boolean): void {
    if (changed) this.version++
  }

  #keepPod(key: string, namespace: string, facts: PodFacts | undefined): void {
    const ofNamespace = childMap(this.#podsByNamespace, namespace)
    if (facts) {
      this.#pods.set(key, facts)
      ofNamespace.set(key, facts)
      return
    }
    this.#pods.delete(key)
    ofNamespace.delete(key)
    if (ofNamespace.size === 0) this.#podsByNamespace.delete(namespace)
  }

  #keepLocal(facts: PodFacts): void {
    const ofNamespace = childMap(this.#local, facts.namespace)
    const pod: LocalPod = ofNamespace.get(facts.key) ?? { facts, policies: new Set(), isolation: {} }
    if (pod.facts.isAnnounced !== facts.isAnnounced || pod.facts.addresses.join() !== facts.addresses.join()) this.#release(pod)
    pod.facts = facts
    ofNamespace.set(facts.key, pod)
    const unselected = [...pod.policies].filter(({ compiled }) => !compiled.target.matches(facts.labels))
    for (const held of this.#policies.get(facts.namespace)?.values() ?? []) {
      if (!held.compiled.target.matches(facts.labels)) continue
      select(held, pod)
      this.#activate(held)
    }
    this.#unselect(pod, unselected)
    this.#unsettled.add(pod)
  }

  #dropLocal({ namespace, key }: PodFacts): void {
    const ofNamespace = this.#local.get(namespace)
    const pod = ofNamespace?.get(key)
    if (!ofNamespace || !pod) return
    this.#release(pod)
    this.#unsettled.delete(pod)
    ofNamespace.delete(key)
    if (ofNamespace.size === 0) this.#local.delete(namespace)
    this.#unselect(pod, [...pod.policies])
  }

  #unselect(pod: LocalPod, policies: readonly HeldPolicy[]): void {
    for (const held of policies) {
      held.selected.delete(pod)
      pod.policies.delete(held)
      if (held.selected.size === 0) this.#deactivate(held)
    }
  }

  #activate(held: HeldPolicy): void {
    if (held.active || held.selected.size === 0) return
    const { compiled } = held
    const terms = Object.fromEntries(
      directions
        .filter((direction) => compiled.rules[direction])
        .map((direction) => [direction, termsOf(compiled, direction, (...of) => this.#groupOf(...of))]),
    )
    held.active = { id: this.#nextId++, policy: compiled, terms }
    for (const list of Object.values(terms)) for (const group of groupsOf(list)) group.users++
    this.version++
  }

  #deactivate(held: HeldPolicy): void {
    if (!held.active) return
    for (const list of Object.values(held.active.terms)) for (const group of groupsOf(list)) this.#releaseGroup(group)
    held.active = undefined
    this.version++
  }

  #groupOf(selector: PeerSelector, port?: GroupPort): PeerGroup {
    const key = groupKey(selector, port)
    const there = this.#groups.get(key)
    if (there) return there
    const group = new PeerGroup(this.#nextId++, selector, port)
    this.#groups.set(key, group)
    if (selector.namespace === undefined) this.#wideGroups.add(group)
    else childSet(this.#groupsByNamespace, selector.namespace).add(group)
    this.#newGroups.push(group)
    return group
  }

  #releaseGroup(group: PeerGroup): void {
    group.users--
    if (group.users > 0) return
    this.#groups.delete(group.key)
    this.#wideGroups.delete(group)
    const { namespace } = group.selector
    const ofNamespace = namespace === undefined ? undefined : this.#groupsByNamespace.get(namespace)
    ofNamespace?.delete(group)
    if (namespace !== undefined && ofNamespace?.size === 0) this.#groupsByNamespace.delete(namespace)
  }

  *#fillNewGroups(): Work {
    for (let group = this.#newGroups.shift(); group; group = this.#newGroups.shift()) {
      const { namespace } = group.selector
      const names = namespace === undefined ? [...this.#namespaces].filter(([, labels]) => group.selectsNamespace(labels)).map(([name]) => name) : [namespace]
      let steps = 0
      for (const name of names) {
        for (const pod of this.#podsByNamespace.get(name)?.values() ?? []) {
          if (group.selector.pods.matches(pod.labels)) group.add(pod)
          if (++steps % stepSize === 0) yield
        }
      }
      this.version++
      yield
    }
  }

  /** Gives the pod the isolations that its policies call for. @returns whether that changed a rule */
  #isolate(pod: LocalPod): boolean {
    if (pod.facts.addresses.length === 0) return false
    const selecting = [...pod.policies].flatMap(({ active }) => active ?? []).sort((a, b) => a.id - b.id)
    const given = directions.map((direction) =>
      this.#isolations.give(
        pod,
        direction,
        selecting.filter(({ terms }) => terms[direction]),
      ),
    )
    this.#count(given.includes(true))
    return given.includes(true)
  }

  #release(pod: LocalPod): void {
    for (const direction of directions) this.#count(this.#isolations.give(pod, direction, []))
  }
}

function select(held: HeldPolicy, pod: LocalPod): void {
  held.selected.add(pod)
  pod.policies.add(held)
}

function childMap<T>(of: Map<string, Map<string, T>>, key: string): Map<string, T> {
  const child = of.get(key) ?? new Map<string, T>()
  of.set(key, child)
  return child
}

function childSet<T>(of: Map<string, Set<T>>, key: string): Set<T> {
  const child = of.get(key) ?? new Set<T>()
  of.set(key, child)
  return child
}

/** Does the work at once. */
export function complete<T>(work: Generator<undefined, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value
}
