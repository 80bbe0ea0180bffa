/** Objects as the parts of an object's page read them (L4): only what they use, since kinds are not known beforehand. */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { ManagedFields } from '../../../model/fieldOwners.ts'
import type { Kind, ObjectName } from '../../../model/places.ts'
import type { OwnerReference } from '../../../model/relations.ts'

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export interface ContainerStatus {
  readonly name: string
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: Readonly<Record<string, { readonly reason?: string; readonly message?: string; readonly exitCode?: number; readonly startedAt?: string }>>
  readonly lastState?: ContainerStatus['state']
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly resources?: { readonly requests?: Readonly<Record<string, string>>; readonly limits?: Readonly<Record<string, string>> }
  readonly ports?: readonly { readonly containerPort: number; readonly protocol?: string; readonly name?: string }[]
}

export interface AnyObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
    readonly ownerReferences?: readonly OwnerReference[]
    readonly managedFields?: readonly ManagedFields[]
  }
  readonly spec?: {
    readonly replicas?: number
    readonly unschedulable?: boolean
    readonly nodeName?: string
    readonly containers?: readonly Container[]
    readonly initContainers?: readonly Container[]
    readonly ephemeralContainers?: readonly Container[]
    readonly selector?: LabelSelector
    readonly [field: string]: unknown
  }
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[]
    readonly capacity?: Readonly<Record<string, string>>
    readonly allocatable?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
}

export interface TabProps {
  readonly kind: Kind
  readonly name: ObjectName
  readonly object: AnyObject
}
