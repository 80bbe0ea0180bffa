/**
 * What a controller is (L3): a name, and a function that makes a Component out of the context. Published as skiff-kubernetes/controller.
 * Upstream: cmd/kube-controller-manager/app/controller_descriptor.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { ObjectTrace } from '#trace/objectTrace'

export interface WorkerOptions {
  /** Workers per controller, by upstream's controller name; see each controller for its default. */
  readonly concurrentSyncs?: Readonly<Record<string, number>> | undefined
}

export interface ControllerContext extends WorkerOptions {
  /** Acts as the controller's own service account. */
  readonly client: Client
  /** One set for all controllers, under system:kube-controller-manager. */
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  /** Notes reconciles of objects that a reader follows. Absent: nothing is noted. */
  readonly trace?: ObjectTrace | undefined
  /** The recorder of one source component. */
  events(component: string): EventRecorder
}

/** Multiples of the client rate limit of the process. */
export interface ClientRateFactors {
  readonly qps?: number | undefined
  readonly burst?: number | undefined
}

/** `Options`: the options that the controller reads; its file declares them with their defaults. */
export interface ControllerDescriptor<Options = object> {
  /** Upstream's name, as in --controllers. */
  readonly name: string
  /** Names that upstream used before. */
  readonly aliases: readonly string[]
  /** The service account of kube-system as which the controller acts; the bootstrap policy grants its rights. */
  readonly serviceAccount: string
  /** Acts as the manager itself, not as a service account. */
  readonly actsAsManager?: boolean | undefined
  /** For a controller that makes more requests than others. Default 1. */
  readonly clientRate?: ClientRateFactors | undefined
  /** Runs only when named, not for '*'. */
  readonly disabledByDefault?: boolean | undefined
  /** Does not run unless this feature gate is on. */
  readonly requiredFeatureGate?: string | undefined
  create(context: ControllerContext, options: Options): Component
}
