/** What `skiff net trace` knows before it judges (L4): objects, views of the nodes and results of probes. gather.ts collects it, diagnose.ts judges. */
import type { ConnectionVerdict } from '#api/debug/networkPolicy'
import type { ConnectionResult, DnsAnswer, NodeRoutes, NodeServiceRules, Resolver } from '#api/debug/nodeNetwork'
import type { Node, Pod, Service, ServicePort } from '#api/gen/types/core.v1'
import type { Ingress, IngressClass } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import type { ShownEndpoint } from '../endpoints.ts'
import type { Seen } from '../reader.ts'

export interface Target {
  /** As given. */
  readonly text: string
  /** A name to resolve. Absent: the address is given. */
  readonly host?: string | undefined
  readonly address?: string | undefined
  readonly pod?: { readonly namespace: string; readonly name: string } | undefined
  readonly service?: { readonly namespace: string; readonly name: string } | undefined
  /** A number, or the name of a port. Absent: the only one there is. */
  readonly port?: string | undefined
  readonly isTls: boolean
}

/** One end that a connection may be led to. */
export interface Destination {
  readonly address: string
  readonly port: number
  readonly protocol: ServicePort['protocol'] & string
  readonly ready: boolean
  readonly node?: string | undefined
  readonly pod?: Frozen<Pod> | undefined
  /** The decision of the network policies at both ends. */
  readonly verdict: Seen<ConnectionVerdict>
}

export interface ServiceFacts {
  readonly namespace: string
  readonly name: string
  readonly service: Seen<Service>
  readonly port?: Frozen<ServicePort> | undefined
  /** All of the port. */
  readonly endpoints: Seen<readonly ShownEndpoint[]>
  /** The pods that the selector matches, and all pods of the namespace if there are none. */
  readonly selected: Seen<readonly Pod[]>
  readonly others: Seen<readonly Pod[]>
  /** On the node of the source. */
  readonly rules: Seen<NodeServiceRules>
  /** The address of the load balancer is the target. */
  readonly isExternal: boolean
}

export interface IngressFacts {
  readonly ingress: Frozen<Ingress>
  readonly classes: Seen<readonly IngressClass[]>
}

export interface TraceFacts {
  readonly nowMs: number
  readonly pod: Frozen<Pod>
  readonly target: Target
  /** The nodes of the source and of the destinations. */
  readonly nodes: ReadonlyMap<string, Seen<Node>>
  readonly routes: ReadonlyMap<string, Seen<NodeRoutes>>
  /** How the pod resolves names; not shown also when its names could not be asked for. */
  readonly resolver: Seen<Resolver>
  /** In the order in which the pod asks. */
  readonly answers: readonly DnsAnswer[]
  /** Rules of the Service of cluster DNS on the node of the source, when no name server answered. */
  readonly dnsRules?: Seen<NodeServiceRules> | undefined
  readonly service?: ServiceFacts | undefined
  readonly ingress?: IngressFacts | undefined
  /** At most four: those that are ready before others, and of these those on the pod's node. */
  readonly destinations: readonly Destination[]
  /** Why nothing was probed. */
  readonly notProbed?: string | undefined
  /** To the address that the pod would use. */
  readonly front?: ConnectionResult | undefined
  /** To the destinations themselves: those that are ready, or all if none is. */
  readonly direct: readonly ConnectionResult[]
}

export const causes = [
  'source',
  'node',
  'class',
  'name',
  'dnsPolicy',
  'service',
  'selector',
  'notReady',
  'targetPort',
  'proxy',
  'policy',
  'route',
  'connection',
  'certificate',
] as const

export type Cause = (typeof causes)[number]

export interface Hop {
  readonly hop: string
  readonly state: 'ok' | 'fault' | 'unknown'
  readonly text: string
  /** Set for a fault. */
  readonly cause?: Cause | undefined
}

export interface Trace {
  readonly pod: string
  readonly target: string
  readonly hops: readonly Hop[]
  /** Absent: not probed. */
  readonly passes?: boolean | undefined
  /** The first hop at fault. Absent: none. */
  readonly culprit?: { readonly cause: Cause; readonly text: string } | undefined
}
