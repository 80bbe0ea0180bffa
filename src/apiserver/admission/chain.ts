/**
 * Runs the plugins in order (L3): mutating ones, a second time if one requests it, then validating ones. Measures the total and each plugin, with
 * one reading of the clock between two plugins. A plugin that does not handle the operation is not measured.
 * Upstream: apiserver/pkg/admission/{chain,reinvocation}.go, admission/metrics (v1.36).
 */
import type { Clock } from '#base/clock'
import { type Histogram, type HistogramSeries, type Labels, type Metrics, noMetrics } from '#base/metrics'
import { type Tracer, traced } from '#base/traceContext'
import type { AdmissionAttributes, AdmissionOperation, AdmissionPlugin } from './admission.ts'
import { AdmissionTrace } from './admissionTrace.ts'

export interface AdmissionChain {
  /** True if there are no plugins. */
  readonly isEmpty: boolean
  /** @throws StatusError what a plugin refuses with */
  admit(attributes: AdmissionAttributes): Promise<void>
  /** @throws StatusError what a plugin refuses with */
  validate(attributes: AdmissionAttributes): Promise<void>
}

/** For writes that have been admitted already. */
export const noAdmission: AdmissionChain = { isEmpty: true, admit: async () => {}, validate: async () => {} }

const operations: readonly AdmissionOperation[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']
const buckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5]

export function createAdmissionChain(plugins: readonly AdmissionPlugin[], clock: Clock, metrics: Metrics = noMetrics, tracer?: Tracer): AdmissionChain {
  const timers = createTimers(metrics)
  const phasesOf = (type: string, method: 'admit' | 'validate') =>
    Object.fromEntries(operations.map((operation) => [operation, phaseOf(plugins, type, method, operation, timers)])) as Phases
  const admitting = phasesOf('admit', 'admit')
  const validating = phasesOf('validate', 'validate')
  return {
    isEmpty: plugins.length === 0,
    admit: (attributes) => traced(tracer, { name: 'Admit' }, () => timed(admitting[attributes.operation], attributes, clock)),
    validate: (attributes) => traced(tracer, { name: 'Validate' }, () => timed(validating[attributes.operation], attributes, clock)),
  }
}

type Phases = Readonly<Record<AdmissionOperation, Phase>>

/** The plugins of one operation. */
interface Phase {
  readonly stage: 'mutatingAdmission' | 'validatingAdmission'
  readonly parts: readonly Part[]
  readonly whole: Timer
}

interface Part {
  readonly plugin: AdmissionPlugin
  readonly run: (attributes: AdmissionAttributes) => Promise<void> | void
  readonly timer: Timer
}

interface Timers {
  step(labels: Labels): Timer
  controller(labels: Labels): Timer
}

function createTimers(metrics: Metrics): Timers {
  const stepLabels = ['type', 'operation', 'rejected']
  const steps = metrics.histogram({
    name: 'apiserver_admission_step_admission_duration_seconds',
    help: 'How long the admission plugins took together, in seconds, by operation and step (validate or admit).',
    labels: stepLabels,
    buckets,
  })
  const summary = metrics.summary({
    name: 'apiserver_admission_step_admission_duration_seconds_summary',
    help: 'How long the admission plugins took together, in seconds, by operation and step (validate or admit).',
    labels: stepLabels,
  })
  const controllers = metrics.histogram({
    name: 'apiserver_admission_controller_admission_duration_seconds',
    help: 'How long an admission plugin took, in seconds, by its name, operation and step (validate or admit).',
    labels: ['name', ...stepLabels],
    buckets,
  })
  return { step: (labels) => new Timer([steps, summary], labels), controller: (labels) => new Timer([controllers], labels) }
}

/** Series for admitted and rejected, created when first used. */
class Timer {
  readonly #metrics: readonly Pick<Histogram, 'series'>[]
  readonly #labels: Labels
  #passed: readonly HistogramSeries[] | undefined
  #rejected: readonly HistogramSeries[] | undefined

  constructor(metrics: readonly Pick<Histogram, 'series'>[], labels: Labels) {
    this.#metrics = metrics
    this.#labels = labels
  }

  passed(ms: number): void {
    this.#passed ??= this.#series('false')
    for (const series of this.#passed) series.observe(ms / 1000)
  }

  rejected(ms: number): void {
    this.#rejected ??= this.#series('true')
    for (const series of this.#rejected) series.observe(ms / 1000)
  }

  #series(rejected: string): readonly HistogramSeries[] {
    return this.#metrics.map((metric) => metric.series({ ...this.#labels, rejected }))
  }
}

function phaseOf(plugins: readonly AdmissionPlugin[], type: string, method: 'admit' | 'validate', operation: AdmissionOperation, timers: Timers): Phase {
  const parts = plugins.flatMap((plugin) => {
    const run = plugin[method]?.bind(plugin)
    return run ? [{ plugin, run, timer: timers.controller({ name: plugin.name, type, operation }) }] : []
  })
  return { stage: method === 'admit' ? 'mutatingAdmission' : 'validatingAdmission', parts, whole: timers.step({ type, operation }) }
}

async function timed(phase: Phase, attributes: AdmissionAttributes, clock: Clock): Promise<void> {
  const startedMs = clock.monotonicMs()
  try {
    let nowMs = await runAll(phase, attributes, clock, startedMs)
    const { reinvocation } = attributes
    if (reinvocation?.wanted && !reinvocation.isSecondRound) {
      reinvocation.isSecondRound = true
      nowMs = await runAll(phase, attributes, clock, nowMs)
    }
    phase.whole.passed(nowMs - startedMs)
  } catch (error) {
    phase.whole.rejected(clock.monotonicMs() - startedMs)
    throw error
  }
}

/** @returns the time at which the last plugin ended */
async function runAll({ parts, stage }: Phase, attributes: AdmissionAttributes, clock: Clock, startedMs: number): Promise<number> {
  let beforeMs = startedMs
  const trace = attributes.trace && new AdmissionTrace(attributes.trace, stage, attributes)
  for (const { plugin, run, timer } of parts) {
    if (!plugin.handles(attributes.operation)) continue
    try {
      const pending = run(attributes)
      if (pending) await pending
    } catch (error) {
      const ms = clock.monotonicMs() - beforeMs
      timer.rejected(ms)
      attributes.refusedBy?.(plugin.name)
      trace?.refused(plugin.name, ms, error)
      throw error
    }
    const nowMs = clock.monotonicMs()
    timer.passed(nowMs - beforeMs)
    trace?.passed(plugin.name, nowMs - beforeMs)
    beforeMs = nowMs
  }
  trace?.done()
  return beforeMs
}
