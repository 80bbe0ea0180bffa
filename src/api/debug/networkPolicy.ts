/** What `skiff net policy` asks and answers (L1). network/policy/explain makes the answer. */
import type { Namespace, Pod } from '../gen/types/core.v1.ts'
import type { NetworkPolicy } from '../gen/types/networking.v1.ts'
import type { Frozen } from '../machinery/meta.ts'

export const policyDirections = ['ingress', 'egress'] as const

export type PolicyDirection = (typeof policyDirections)[number]

/** One end of a connection: a pod, or an address that no pod of the cluster has. */
export type ConnectionEnd = { readonly pod: Frozen<Pod> } | { readonly address: string }

export interface ConnectionQuestion {
  readonly source: ConnectionEnd
  readonly destination: ConnectionEnd
  readonly ports: readonly { readonly protocol: 'TCP' | 'UDP' | 'SCTP'; readonly port: number }[]
}

export interface PolicyQuestion {
  readonly pod: Frozen<Pod>
  readonly connection?: ConnectionQuestion | undefined
  /** Those of the namespaces of all pods in the question, at least. */
  readonly policies: readonly Frozen<NetworkPolicy>[]
  readonly namespaces: readonly Pick<Frozen<Namespace>, 'metadata'>[]
}

/** Names are namespace/name. */
export interface PolicyExplanation {
  readonly pod: string
  readonly addresses: readonly string[]
  /** Absent until the pod is bound. */
  readonly node?: string | undefined
  /** A pod on the network of its node is isolated by no policy. */
  readonly hostNetwork: boolean
  /** The policies that select the pod, each with its rules in words. Without any in a direction everything is allowed there. */
  readonly selectedBy: Readonly<Record<PolicyDirection, readonly SelectingPolicy[]>>
  readonly verdicts: readonly ConnectionVerdict[]
}

export interface SelectingPolicy {
  readonly policy: string
  readonly rules: readonly string[]
  /** Why the policy allows nothing, although it has rules. */
  readonly obstacle?: string
}

export interface ConnectionVerdict {
  /** A pod's name, or an address. */
  readonly source: string
  readonly destination: string
  readonly protocol: string
  readonly port: number
  readonly allowed: boolean
  readonly checks: readonly PolicyCheck[]
}

/** How the policies of one end decide. */
export interface PolicyCheck {
  readonly direction: PolicyDirection
  readonly of: string
  readonly allowed: boolean
  /** `policies`: one of them decided. The others allow everything: no policy isolates the end, a pod reaches itself, and a node its own pods. */
  readonly because: 'policies' | 'notIsolated' | 'noPod' | 'itself' | 'ownNode'
  /** The policies that isolate the end, with the numbers of their rules that allow the connection, from 1. */
  readonly policies: readonly { readonly policy: string; readonly rules: readonly number[] }[]
}

export type ExplainPolicies = (question: PolicyQuestion) => Promise<PolicyExplanation>
