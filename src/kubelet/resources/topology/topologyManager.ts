/**
 * Brings the hints of all providers together when a pod is admitted, then has each allocate (L3). Scope `container` aligns each container by
 * itself, scope `pod` all of them together. Upstream: kubelet/cm/topologymanager/topology_manager.go, scope_container.go, scope_pod.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { FrozenContainer, FrozenPod } from '../../core/containers.ts'
import type { Refusal } from '../../core/refusal.ts'
import type { NumaInfo, ProviderHints, TopologyHint } from './hints.ts'
import { type TopologyOptions, type TopologyPolicy, topologyPolicies } from './policies.ts'

/** A manager of resources on NUMA nodes: CPUs, memory, devices. */
export interface HintProvider {
  hints(pod: FrozenPod, container: FrozenContainer): ProviderHints
  podHints(pod: FrozenPod): ProviderHints
  /** @throws Error, an AdmissionError for a specific reason */
  allocate(pod: FrozenPod, container: FrozenContainer, hint: TopologyHint): void | Promise<void>
}

/** Why an allocation failed, where upstream has a reason for it other than UnexpectedAdmissionError. */
export class AdmissionError extends Error {
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.name = 'AdmissionError'
    this.reason = reason
  }
}

export interface TopologyManager {
  /** Allocates for every container; returns undefined on success. After a refusal the caller releases the allocations. */
  admit(pod: FrozenPod): Promise<Refusal | undefined>
}

export interface TopologySettings {
  readonly policy: string
  readonly scope: string
  readonly options: TopologyOptions
  /** Called for each container, if the policy guarantees that its resources are on one NUMA node. */
  readonly onAligned?: ((scope: string, succeeded: boolean) => void) | undefined
}

const anyNode: TopologyHint = { affinity: undefined, preferred: false }

/** @throws Error for a policy or scope that does not exist, or a machine with more NUMA nodes than can be enumerated. */
export function createTopologyManager(settings: TopologySettings, info: NumaInfo, providers: readonly HintProvider[]): TopologyManager {
  const policy = topologyPolicies.find(({ name }) => name === settings.policy)
  if (!policy) throw new Error(`unknown policy: "${settings.policy}"`)
  if (settings.scope !== 'container' && settings.scope !== 'pod') throw new Error(`unknown scope: "${settings.scope}"`)
  if (policy.decide && info.nodes.length > settings.options.maxNumaNodes) {
    throw new Error(`unsupported on machines with more than ${settings.options.maxNumaNodes} NUMA Nodes`)
  }
  const decide = (hints: readonly ProviderHints[], by: NonNullable<TopologyPolicy['decide']>) => by(info, hints, settings.options.preferClosest)
  const aligned = (succeeded: boolean) => {
    if (settings.policy === 'single-numa-node') settings.onAligned?.(settings.scope, succeeded)
  }
  const refused: Refusal = { reason: 'TopologyAffinityError', message: 'Resources cannot be allocated with Topology locality' }
  return {
    admit: async (pod) => {
      const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers]
      let common: TopologyHint = anyNode
      if (policy.decide && settings.scope === 'pod') {
        const { hint, admit } = decide(
          providers.map((provider) => provider.podHints(pod)),
          policy.decide,
        )
        if (!admit) {
          aligned(false)
          return refused
        }
        common = hint
      }
      for (const container of containers) {
        let hint = common
        if (policy.decide && settings.scope === 'container') {
          const decision = decide(
            providers.map((provider) => provider.hints(pod, container)),
            policy.decide,
          )
          if (!decision.admit) {
            aligned(false)
            return refused
          }
          hint = decision.hint
        }
        try {
          for (const provider of providers) await provider.allocate(pod, container, hint)
        } catch (error) {
          return admissionRefusal(error)
        }
        aligned(true)
      }
      return undefined
    },
  }
}

/** A failed allocation in the words that a rejected pod's status has. */
export function admissionRefusal(error: unknown): Refusal {
  const text = messageOf(error)
  if (error instanceof AdmissionError) return { reason: error.reason, message: text }
  return { reason: 'UnexpectedAdmissionError', message: `Allocate failed due to ${text}, which is unexpected` }
}
