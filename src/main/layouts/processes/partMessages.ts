/** What the server asks the process of a part, and what it answers (L5). The samples have maps: the channel serializes as V8 does. */
import type { ResourceSample } from '#kubelet/server/stats/resourceSample'

/** The cluster's description or certificates may have changed. */
export interface LookRequest {
  readonly look: true
}

/** Measures a node. */
export interface MeterRequest {
  readonly id: number
  readonly node: string
}

export type PartRequest = LookRequest | MeterRequest

export interface MeterAnswer {
  readonly id: number
  /** Absent: the node was not measured. */
  readonly sample?: ResourceSample | undefined
  readonly error?: string | undefined
}
