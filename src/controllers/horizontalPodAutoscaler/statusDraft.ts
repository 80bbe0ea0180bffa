/** The status that a sync of an autoscaler writes (L3): conditions change one by one, the rest at the end. Upstream: setCondition and setStatus of horizontal.go (v1.36). */
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricStatus } from '#api/gen/types/autoscaling.v2'
import type { Condition } from '#api/gen/types/meta.v1'
import { isConditionTrue, setStatusCondition, withoutCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'

export interface Reasoned {
  readonly reason: string
  readonly message: string
}

export type ConditionType = 'AbleToScale' | 'ScalingActive' | 'ScalingLimited' | 'ScaledToZero'

export interface Outcome {
  readonly currentReplicas: number
  readonly desiredReplicas: number
  /** Null: no metric was looked at. */
  readonly currentMetrics: readonly MetricStatus[] | null
  readonly isScaled: boolean
}

export class StatusDraft {
  #status: HorizontalPodAutoscalerStatus
  readonly #now: () => number

  constructor(autoscaler: Frozen<HorizontalPodAutoscaler>, now: () => number) {
    this.#status = deepCopy<HorizontalPodAutoscalerStatus>(autoscaler.status ?? { desiredReplicas: 0 })
    this.#now = now
  }

  get status(): HorizontalPodAutoscalerStatus {
    return this.#status
  }

  set(type: ConditionType, isTrue: boolean, { reason, message }: Reasoned): void {
    this.#status.conditions ??= []
    setStatusCondition(this.#status.conditions as Condition[], { type, status: isTrue ? 'True' : 'False', reason, message }, this.#now())
  }

  remove(type: ConditionType): void {
    this.#status.conditions = withoutCondition(this.#status.conditions, type)
  }

  isTrue(type: ConditionType): boolean {
    return isConditionTrue(this.#status.conditions, type)
  }

  finish({ currentReplicas, desiredReplicas, currentMetrics, isScaled }: Outcome): void {
    const { conditions, lastScaleTime } = this.#status
    this.#status = {
      currentReplicas,
      desiredReplicas,
      currentMetrics: currentMetrics as MetricStatus[],
      ...(isScaled ? { lastScaleTime: formatTime(this.#now()) } : lastScaleTime === undefined ? {} : { lastScaleTime }),
      ...(conditions ? { conditions } : {}),
    }
  }
}
