/**
 * Sets the replicas of scalable objects by the usage of their pods or by other metrics (L3). Each autoscaler is synced once a period, counted from the
 * end of its last sync, whether it succeeded or not; a change of the object does not hasten it. Upstream: pkg/controller/podautoscaler (v1.36).
 */
import type { HorizontalPodAutoscaler } from '#api/gen/types/autoscaling.v2'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'
import { horizontalPodAutoscalers, pods } from '#client/builtIn'
import { createDiscovery } from '#client/discovery/discovery'
import { createScaleClient } from '#client/scaleClient'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, type Result } from '../framework/reconciler.ts'
import { type Action, createAutoscalerMetrics, type Fault } from './autoscalerMetrics.ts'
import { createKindMapper } from './kindMapper.ts'
import type { ScaleHistory } from './limits.ts'
import { createMetricsClient } from './metricsClient.ts'
import { createPodClaims } from './podClaims.ts'
import { SyncFailure, syncAutoscaler } from './sync.ts'

/** Feature gates that the controller reads. */
export const autoscalerFeatures = ['HPAConfigurableTolerance', 'HPAScaleToZero'] as const

export interface AutoscalerOptions {
  readonly autoscaler?:
    | {
        /** Default 15 s. */
        readonly syncPeriodMs?: number | undefined
        /** Scale-down never goes below the highest recommendation of this window. Default 5 min. */
        readonly downscaleStabilizationMs?: number | undefined
        /** Default 0.1. */
        readonly tolerance?: number | undefined
        /** Default 5 min. */
        readonly cpuInitializationMs?: number | undefined
        /** Default 30 s. */
        readonly initialReadinessDelayMs?: number | undefined
      }
    | undefined
  /** Values of --feature-gates; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
}

export const horizontalPodAutoscaler: ControllerDescriptor<AutoscalerOptions> = {
  name: 'horizontal-pod-autoscaler-controller',
  aliases: ['horizontalpodautoscaling'],
  serviceAccount: 'horizontal-pod-autoscaler',
  create: createAutoscalerController,
}

function createAutoscalerController(context: ControllerContext, { autoscaler = {}, featureGates = {} }: AutoscalerOptions): Component {
  const { syncPeriodMs = 15_000, downscaleStabilizationMs = 300_000, tolerance = 0.1 } = autoscaler
  const { cpuInitializationMs = 300_000, initialReadinessDelayMs = 30_000 } = autoscaler
  const { client, clock } = context
  const informer = context.informers.of(horizontalPodAutoscalers)
  const podInformer = context.informers.of(pods)
  const mapper = createKindMapper(createDiscovery(client.transport), clock)
  const claims = createPodClaims()
  const histories = new Map<string, ScaleHistory>()
  const monitor = createAutoscalerMetrics(context.metrics)
  const deps = {
    context,
    events: context.events('horizontal-pod-autoscaler'),
    mapper,
    scales: createScaleClient(client),
    metricsClient: createMetricsClient({ transport: client.transport, mapper, clock, syncPeriodMs }),
    monitor,
    claims,
    pods: podInformer.lister,
    histories,
    settings: {
      downscaleStabilizationMs,
      tolerance,
      periods: { cpuInitializationMs, initialReadinessDelayMs },
      scalesToZero: featureEnabled(featureGates, 'HPAScaleToZero'),
      hasOwnTolerance: featureEnabled(featureGates, 'HPAConfigurableTolerance'),
    },
  }
  const everyPeriod = { when: () => syncPeriodMs, forget: () => {}, numRequeues: () => 1 }
  const reconciler = createReconciler(context, {
    name: horizontalPodAutoscaler.name,
    queueName: 'horizontalpodautoscaler',
    workers: 5,
    rateLimiter: everyPeriod,
    reconcile,
  })
  const enqueue = (object: Frozen<HorizontalPodAutoscaler>) => {
    claims.add(keyOf(object))
    monitor.count(claims.size)
    reconciler.queue.addAfter(keyOf(object), syncPeriodMs)
  }
  reconciler.watch(informer, { onAdd: enqueue, onUpdate: (_, object) => enqueue(object), onDelete: (object) => forget(keyOf(object)) })
  reconciler.needs(podInformer)
  return reconciler

  function forget(key: string): void {
    claims.remove(key)
    histories.delete(key)
    monitor.count(claims.size)
    monitor.gone(key)
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const object = informer.store.get(key)
    if (!object) {
      // A sync that was under way when the object was deleted has written these again.
      forget(key)
      return undefined
    }
    const startedMs = clock.monotonicMs()
    let action: Action = 'none'
    let fault: Fault = 'none'
    try {
      await syncAutoscaler(deps, object, signal, (done) => {
        action = done
      })
      return { requeueAfterMs: syncPeriodMs }
    } catch (error) {
      fault = error instanceof SyncFailure ? error.fault : 'internal'
      throw error
    } finally {
      monitor.reconciled(action, fault, (clock.monotonicMs() - startedMs) / 1000)
    }
  }
}
