/**
 * Follows the objects that policies depend on (L3): handlers note the names of changed objects, and the model takes them in afterwards, in short turns. A pod's
 * addresses may come from its kubelet before the API has them.
 */
import type { Namespace, Node, Pod } from '#api/gen/types/core.v1'
import type { NetworkPolicy } from '#api/gen/types/networking.v1'
import { parseCidr } from '#api/machinery/ip'
import { type Frozen, type KubeObject, keyOf, refOfKey } from '#api/machinery/meta'
import { namespaces, networkPolicies, nodes, pods } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { podCidrsOf } from '../podNetwork.ts'
import { compilePolicy } from './compilePolicy.ts'
import { type PodFacts, podFactsOf, slimPod } from './facts.ts'
import type { PolicyModel } from './model.ts'

/** A pod as its kubelet runs it. */
interface Announced {
  readonly pod: Frozen<Pod>
  readonly addresses: readonly string[]
}

/** More than a node has pods; the oldest is forgotten. */
const mostAnnounced = 4096

/** Reduces an object to the fields that policies depend on. */
export function slimObject(object: Frozen<KubeObject>): Frozen<KubeObject> {
  if (object.kind === 'Pod') return slimPod(object as Frozen<Pod>)
  const { managedFields: _, annotations: __, ...metadata } = object.metadata
  if (object.kind !== 'Node') return { ...object, metadata }
  return { ...object, metadata, spec: { podCIDRs: podCidrsOf(object as Frozen<Node>) }, status: undefined } as Frozen<KubeObject>
}

export interface ChangeReport {
  /** A pod changed the model's rules, or its own changed. */
  touched(podKey: string): void
  /** The policy allows nothing, although it has rules. */
  obstacle(policyKey: string, reason: string): void
}

export interface PolicyChanges {
  synced(signal: AbortSignal): Promise<void>
  /** The kubelet has created the pod's sandbox. */
  announce(pod: Frozen<Pod>, addresses: readonly string[]): void
  /** Whether a change of the pod is not in the model. */
  isPending(podKey: string): boolean
  /** Brings the model up to date. */
  takeIn(model: PolicyModel, report: ChangeReport): Generator<undefined, void>
}

/** For as long as the informers run. @param nodeName the own node @param ring is called when the model may be out of date */
export function followPolicyObjects(informers: SharedInformerFactory, nodeName: string, ring: () => void): PolicyChanges {
  const podInformer = informers.of(pods)
  const namespaceInformer = informers.of(namespaces)
  const policyInformer = informers.of(networkPolicies)
  const nodeInformer = informers.of(nodes)
  const announced = new Map<string, Announced>()
  const changed = { nodes: new Set<string>(), pods: new Set<string>(), namespaces: new Set<string>(), policies: new Set<string>() }
  const note = (names: Set<string>, object: Frozen<KubeObject>) => {
    names.add(keyOf(object))
    ring()
  }
  const forget = (pod: Frozen<Pod>) => {
    // Another pod of the same name may run already.
    if (announced.get(keyOf(pod))?.pod.metadata.uid === pod.metadata.uid) announced.delete(keyOf(pod))
    note(changed.pods, pod)
  }
  follow(podInformer, (pod) => note(changed.pods, pod), forget)
  follow(namespaceInformer, (namespace) => note(changed.namespaces, namespace))
  follow(policyInformer, (policy) => note(changed.policies, policy))
  const noteNode = (node: Frozen<Node>) => note(changed.nodes, node)
  nodeInformer.addHandler({ onAdd: noteNode, onUpdate: (old, node) => podCidrsOf(old).join() !== podCidrsOf(node).join() && noteNode(node) })
  /**
   * A node without ranges is not restricted; the pods of an unknown node have no address. The own node's pods stay isolated when it gets another range or is
   * deleted.
   */
  const rangesOf = (name = '') => {
    const node = nodeInformer.lister.get({ name })
    const cidrs = node ? podCidrsOf(node) : []
    return name === nodeName || (node && cidrs.length === 0) ? undefined : cidrs.flatMap((cidr) => parseCidr(cidr) ?? [])
  }
  const podFacts = (key: string): PodFacts | undefined => {
    const known = podInformer.lister.get(refOfKey(key))
    const own = announced.get(key)
    if (!own) return known && podFactsOf(known, { ranges: rangesOf(known.spec.nodeName) })
    // The API's labels are newer, unless it has the pod's predecessor or the mirror of a static pod.
    return podFactsOf(known && known.metadata.uid === own.pod.metadata.uid ? known : own.pod, { announced: own.addresses })
  }
  return {
    synced: async (signal) => {
      await Promise.all([podInformer, namespaceInformer, policyInformer, nodeInformer].map((informer) => informer.synced(signal)))
    },
    announce: (pod, addresses) => {
      const key = keyOf(pod)
      announced.delete(key)
      announced.set(key, { pod, addresses })
      for (const oldest of announced.keys()) if (announced.size > mostAnnounced) announced.delete(oldest)
      note(changed.pods, pod)
    },
    isPending: (podKey) => changed.pods.has(podKey),
    *takeIn(model, { touched, obstacle }) {
      if (changed.nodes.size > 0) {
        for (const pod of podInformer.store.list()) if (changed.nodes.has(pod.spec.nodeName ?? '')) changed.pods.add(keyOf(pod))
        changed.nodes.clear()
        yield
      }
      for (const name of takeAll(changed.namespaces)) {
        const namespace: Frozen<Namespace> | undefined = namespaceInformer.lister.get({ name })
        yield* model.updateNamespace(name, namespace && (namespace.metadata.labels ?? {}))
        yield
      }
      for (const key of takeAll(changed.policies)) {
        const policy: Frozen<NetworkPolicy> | undefined = policyInformer.lister.get(refOfKey(key))
        const compiled = policy && (yield* compilePolicy(policy))
        if (compiled?.obstacle) obstacle(key, compiled.obstacle)
        yield* model.updatePolicy(key, refOfKey(key).namespace ?? '', compiled)
        yield
      }
      for (const key of takeAll(changed.pods)) {
        const before = model.version
        yield* model.updatePod(key, podFacts(key))
        if (model.version !== before) touched(key)
        yield
      }
      yield* model.settle(touched)
    },
  }
}

function follow<T extends KubeObject>(informer: SharedInformer<T>, changed: (object: Frozen<T>) => void, deleted = changed): void {
  const onUpdate = (old: Frozen<T>, object: Frozen<T>) => {
    if (old.metadata.resourceVersion !== object.metadata.resourceVersion) changed(object)
    // A relist may find another object under the name.
    if (old.metadata.uid !== object.metadata.uid) deleted(old)
  }
  informer.addHandler({ onAdd: changed, onUpdate, onDelete: deleted })
}

function takeAll(names: Set<string>): readonly string[] {
  const taken = [...names]
  names.clear()
  return taken
}
