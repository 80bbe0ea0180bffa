/**
 * One try to place a pod (L3): decide, ask PostFilter where nothing fits, assume, reserve, ask for permission, and hand over to the binding.
 * Upstream: pkg/scheduler/schedule_one.go schedulingCycle (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import { noteAttempt } from './attemptTrace.ts'
import type { Attempt, BindingCycle, CycleParts, Refused } from './bindingCycle.ts'
import type { DecisionLog } from './decisions.ts'
import type { PostFilterResult } from './framework/plugin.ts'
import { hasLargeAffinity, type PodInfo, podInfo, termsInSteps } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'
import { fitMessage } from './framework/status.ts'
import { AnswerMemory } from './nodeAnswers.ts'
import { OpportunisticBatch } from './opportunisticBatch.ts'
import { type NoFit, type Placement, type ScheduleResult, schedulePod } from './schedulePod.ts'
import type { QueuedPod } from './schedulingQueue.ts'
import { timedPercent, timedProfile } from './timedProfile.ts'

export interface SchedulingCycleDeps extends CycleParts {
  readonly clock: Clock
  readonly random: Random
  readonly decisions: DecisionLog
  readonly binding: BindingCycle
  readonly percentageOfNodesToScore: number
}

const cyclesPerTimed = 100 / timedPercent

export class SchedulingCycle {
  readonly #deps: SchedulingCycleDeps
  #startIndex = 0
  #cycles = 0
  readonly #scoreRows: number[][] = []
  readonly #timedProfiles = new Map<Profile, Profile>()
  readonly #answers = new Map<string, AnswerMemory>()
  readonly #batches = new Map<string, OpportunisticBatch>()

  constructor(deps: SchedulingCycleDeps) {
    this.#deps = deps
  }

  /** A promise only where an extender or the API had to be called, or the pod is large; the next cycle begins after it. */
  run(queued: QueuedPod): Promise<void> | undefined {
    const { cache, queue, profiles, clock, binding } = this.#deps
    const { pod } = queued
    const known = profiles.get(pod.spec.schedulerName ?? 'default-scheduler')
    if (!known || pod.metadata.deletionTimestamp || cache.isPlaced(queued.key, pod.metadata.uid)) {
      queue.drop(queued)
      return undefined
    }
    const profile = this.#cycles++ % cyclesPerTimed === 0 ? this.#timed(known) : known
    const startedMs = clock.monotonicMs()
    // One pod that a plugin stumbles over must not keep the others waiting.
    const stumble = (error: unknown) => binding.error(queued, profile, error, startedMs)
    if (hasLargeAffinity(pod)) return this.#runInTurns(queued, profile, startedMs).catch(stumble)
    const info = podInfo(pod)
    try {
      const result = this.#decide(profile, info)
      if (!(result instanceof Promise)) return this.#act(result, queued, profile, info, startedMs)?.catch(stumble)
      return result.then((decided) => this.#act(decided, queued, profile, info, startedMs)).catch(stumble)
    } catch (error) {
      stumble(error)
      return undefined
    }
  }

  /** For a pod with a large affinity: to compile its terms, to compare them and to place the pod takes a turn of the event loop each. */
  async #runInTurns(queued: QueuedPod, profile: Profile, startedMs: number): Promise<void> {
    const { clock } = this.#deps
    const steps = termsInSteps(queued.pod)
    let step = steps.next()
    for (; !step.done; step = steps.next()) await clock.turn()
    const info = podInfo(queued.pod, step.value)
    await clock.turn()
    const result = await this.#decide(profile, info)
    await clock.turn()
    await this.#act(result, queued, profile, info, startedMs)
  }

  #timed(profile: Profile): Profile {
    let timed = this.#timedProfiles.get(profile)
    if (!timed) {
      const { schedulerMetrics, clock } = this.#deps
      timed = timedProfile(profile, schedulerMetrics.plugin, () => clock.monotonicMs())
      this.#timedProfiles.set(profile, timed)
    }
    return timed
  }

  #answersOf({ name }: Profile): AnswerMemory {
    let answers = this.#answers.get(name)
    if (!answers) {
      answers = new AnswerMemory()
      this.#answers.set(name, answers)
    }
    return answers
  }

  #batchOf(profile: Profile): OpportunisticBatch {
    let batch = this.#batches.get(profile.name)
    if (!batch) {
      const { clock, random, extenders, schedulerMetrics } = this.#deps
      batch = new OpportunisticBatch(profile, extenders.isEmpty, { nowMs: () => clock.monotonicMs(), random, metrics: schedulerMetrics.batch(profile.name) })
      this.#batches.set(profile.name, batch)
    }
    return batch
  }

  #decide(profile: Profile, pod: PodInfo): ScheduleResult | Promise<ScheduleResult> {
    const { cache, random, nominator, percentageOfNodesToScore, extenders, schedulerMetrics } = this.#deps
    const nominatedTo = nominator.isEmpty ? undefined : (name: string) => nominator.on(name)
    return schedulePod(profile, pod, cache, {
      random,
      startIndex: this.#startIndex,
      percentageOfNodesToScore,
      nominatedTo,
      extenders: extenders.forPod(pod),
      timer: schedulerMetrics.timer(profile.name),
      answers: this.#answersOf(profile),
      batch: this.#batchOf(profile).begin(pod, this.#cycles),
      scoreRows: this.#scoreRows,
    })
  }

  #act(result: ScheduleResult, queued: QueuedPod, profile: Profile, pod: PodInfo, startedMs: number): Promise<void> | undefined {
    const total = this.#deps.cache.nodes.length
    this.#deps.schedulerMetrics.algorithm((this.#deps.clock.monotonicMs() - startedMs) / 1000)
    if ('placed' in result) {
      if (total > 0) this.#startIndex = (this.#startIndex + result.placed.evaluatedNodes) % total
      this.#place(result.placed, queued, profile, pod, startedMs)
      return undefined
    }
    if (total > 0) this.#startIndex = (this.#startIndex + result.refused.evaluatedNodes) % total
    return this.#refused(result.refused, queued, profile, pod, startedMs)
  }

  #place(placement: Placement, queued: QueuedPod, profile: Profile, pod: PodInfo, startedMs: number): void {
    const { cache, nominator, binding, decisions, clock } = this.#deps
    const { node, state, scores, evaluatedNodes, feasibleNodes } = placement
    decisions.placed(pod.pod, { atMs: clock.now(), nodeName: node.name, evaluatedNodes, feasibleNodes, scores })
    const result = `chose ${node.name}: ${feasibleNodes} of ${evaluatedNodes} nodes fit`
    noteAttempt(this.#deps, pod.pod, { what: 'attempt', startedMs, waitedMs: clock.now() - queued.sinceMs, node: node.name, result })
    cache.assume(pod, node.name)
    nominator.delete(pod.pod.metadata.uid ?? '')
    const attempt = { queued, profile, pod, state, nodeName: node.name, startedMs }
    const waits = new Map<string, number>()
    try {
      const refused = this.#reserve(attempt, waits)
      if (refused) binding.undo(attempt, refused)
      else binding.start(attempt, waits)
    } catch (error) {
      binding.failed(attempt, error)
    }
  }

  /** Asks Reserve and Permit. @returns the first refusal; `waits` gets the milliseconds for which plugins hold the pod back */
  #reserve({ profile, pod, state, nodeName }: Attempt, waits: Map<string, number>): Refused | undefined {
    const timer = this.#deps.schedulerMetrics.timer(profile.name)
    for (const plugin of profile.points.reserve) {
      const refusal = plugin.reserve(state, pod, nodeName)
      if (!refusal) continue
      timer.done('Reserve', refusal.code)
      return { refusal, plugin: plugin.name }
    }
    timer.done('Reserve', 'Success')
    for (const plugin of profile.points.permit) {
      const answer = plugin.permit(state, pod, nodeName)
      if (!answer) continue
      if ('waitMs' in answer) waits.set(plugin.name, answer.waitMs)
      else {
        timer.done('Permit', answer.code)
        return { refusal: answer, plugin: plugin.name }
      }
    }
    timer.done('Permit', 'Success')
    return undefined
  }

  #refused(refused: NoFit, queued: QueuedPod, profile: Profile, pod: PodInfo, startedMs: number): Promise<void> | undefined {
    const { cache } = this.#deps
    const { postFilter } = profile.points
    if (cache.nodes.length === 0 || postFilter.length === 0) {
      this.#report(refused, queued, profile, pod, startedMs, undefined)
      return undefined
    }
    return this.#askPostFilters(refused, profile, pod).then((answer) => this.#report(refused, queued, profile, pod, startedMs, answer))
  }

  /** The first that can help decides; otherwise what they said together. */
  async #askPostFilters(refused: NoFit, profile: Profile, pod: PodInfo): Promise<PostFilterAnswer> {
    const { clock, schedulerMetrics } = this.#deps
    const startedMs = clock.monotonicMs()
    const done = (status: 'Success' | 'Unschedulable') => schedulerMetrics.point('PostFilter', profile.name, status, (clock.monotonicMs() - startedMs) / 1000)
    const messages: string[] = []
    let nominatedNodeName: string | undefined
    for (const plugin of profile.points.postFilter) {
      const result: PostFilterResult = await plugin.postFilter(refused.state, pod, refused.refusals)
      if (!result.refusal) {
        done('Success')
        return { message: '', nominatedNodeName: result.nominatedNodeName }
      }
      if (result.nominatedNodeName !== undefined) nominatedNodeName = result.nominatedNodeName
      messages.push(...result.refusal.reasons)
      if (result.refusal.code === 'UnschedulableAndUnresolvable') break
    }
    done('Unschedulable')
    return { message: messages.join(', '), nominatedNodeName }
  }

  #report(refused: NoFit, queued: QueuedPod, profile: Profile, pod: PodInfo, startedMs: number, answer: PostFilterAnswer | undefined): void {
    const { cache, binding, decisions, clock } = this.#deps
    const totalNodes = cache.nodes.length
    const message = fitMessage({
      totalNodes,
      refusals: refused.refusals.forMessage(totalNodes),
      preFilterMessage: refused.preFilterMessage,
      postFilterMessage: answer?.message,
    })
    noteAttempt(this.#deps, pod.pod, { what: 'attempt', startedMs, waitedMs: clock.now() - queued.sinceMs, result: message })
    const { refusals, evaluatedNodes, preFilterMessage } = refused
    const decision = { atMs: clock.now(), message, totalNodes, evaluatedNodes, refusals, preFilterMessage, nominatedNodeName: answer?.nominatedNodeName }
    decisions.refused(pod.pod, { ...decision, refusedBy: [...refused.refusedBy, ...refused.pendingOn] })
    // Without nodes no plugin refused the pod: it is tried again after a time, without an event.
    const failure = totalNodes === 0 ? nobody : refused
    binding.refuse(queued, profile, pod, message, failure, startedMs, answer?.nominatedNodeName)
  }
}

const nobody = { refusedBy: new Set<string>(), pendingOn: new Set<string>() }

interface PostFilterAnswer {
  readonly message: string
  readonly nominatedNodeName: string | undefined
}
