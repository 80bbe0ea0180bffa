/**
 * Drives a load against a cluster (L4): creates its Deployments, changes them at the plan's rates, and removes them, while two watches measure what a client sees.
 * Needs the rights to create namespaces and what is in them, and for node flaps to patch nodes.
 */
import type { Deployment } from '#api/gen/types/apps.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope, deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type Random, seededRandom } from '#base/random'
import { deployments, horizontalPodAutoscalers, namespaces, pods } from '#client/builtIn'
import { runReflector } from '#client/cache/reflector'
import type { Client } from '#client/client'
import { poll } from '#client/waitFor'
import { CommandError } from '../exitCodes.ts'
import type { Progress } from '../progress.ts'
import { DeploymentTimes } from './deploymentTimes.ts'
import type { LoadPlan, Operation } from './loadPlan.ts'
import type { LoadReport, Phase } from './loadReport.ts'
import { autoscalerOf, deploymentOf, drawn, loadLabel, namespacesOf, type Target, targetsOf } from './loadTargets.ts'
import { createNodeFlaps } from './nodeFlaps.ts'
import { createPace } from './pace.ts'
import { PodTimes } from './podTimes.ts'
import { Failures, Samples } from './samples.ts'

export interface LoadDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  readonly progress: Progress
}

/** Requests of one kind that may be under way at the same time. */
const places = 16
const pollMs = 200
const fieldManager = 'skiff-simulate'

interface Run extends LoadDeps {
  readonly plan: LoadPlan
  readonly random: Random
  readonly targets: readonly Target[]
  readonly podTimes: PodTimes
  readonly deploymentTimes: DeploymentTimes
  readonly requests: Samples
  readonly failures: Failures
  readonly signal: AbortSignal
}

/**
 * @param keep leaves the namespaces
 * @throws CommandError alreadyExists when one of the namespaces is there
 */
export async function runLoad(deps: LoadDeps, plan: LoadPlan, keep: boolean, signal: AbortSignal): Promise<LoadReport> {
  using watching = abortScope(signal)
  const random = seededRandom(plan.seed)
  const run: Run = {
    ...deps,
    plan,
    random,
    targets: targetsOf(plan, random),
    podTimes: new PodTimes(deps.clock),
    deploymentTimes: new DeploymentTimes(deps.clock),
    requests: new Samples(),
    failures: new Failures(),
    signal,
  }
  await createNamespaces(run)
  const watches = watch(run, watching.signal)
  const fill = await phase(run, () => filling(run))
  const churn = plan.churn.durationMs > 0 ? await phase(run, () => churning(run)) : undefined
  const removalMs = keep ? undefined : await removal(run)
  watching.abort()
  await watches
  return {
    name: plan.name,
    namespaces: plan.namespaces,
    deployments: run.targets.length,
    fill,
    churn,
    removalMs,
    requests: run.requests.percentiles(),
    failures: run.failures.list(),
  }
}

/** All of them, or none when one exists. */
async function createNamespaces({ client, plan }: Run): Promise<void> {
  const wanted = namespacesOf(plan)
  const there = new Set((await client.of(namespaces).list()).items.map(({ metadata }) => metadata.name))
  const taken = wanted.find(({ metadata }) => there.has(metadata.name))
  if (taken) {
    throw new CommandError('alreadyExists', `there is a namespace ${taken.metadata.name}: an earlier load may have left it`, {
      hint: `kubectl delete namespaces -l ${loadLabel}=${plan.name}, or give the load another name`,
    })
  }
  for (const namespace of wanted) await client.of(namespaces).create(namespace, { fieldManager })
}

function watch({ client, clock, log, random, plan, podTimes, deploymentTimes }: Run, signal: AbortSignal): Promise<unknown> {
  const deps = { clock, log, random: seededRandom(random.int(2 ** 31)) }
  const selected = { labelSelector: `${loadLabel}=${plan.name}` }
  return Promise.all([
    runReflector(client.of(pods), podTimes, deps, selected, signal),
    runReflector(client.of(deployments), deploymentTimes, deps, selected, signal),
  ])
}

interface Work {
  readonly samples: Samples
  readonly operations: Readonly<Record<string, number>>
  readonly late: number
}

async function phase({ clock, podTimes, deploymentTimes }: Run, work: () => Promise<Work>): Promise<Phase> {
  const startedMs = clock.monotonicMs()
  const overtaken = deploymentTimes.overtaken
  const { samples, operations, late } = await work()
  return {
    durationMs: clock.monotonicMs() - startedMs,
    operations,
    late,
    overtaken: deploymentTimes.overtaken - overtaken,
    pods: podTimes.count,
    ready: podTimes.ready,
    unscheduled: podTimes.unbound,
    unsettled: deploymentTimes.pending,
    times: samples.percentiles(),
  }
}

async function filling(run: Run): Promise<Work> {
  const { client, plan, targets, progress, deploymentTimes, podTimes, signal, clock } = run
  const samples = new Samples()
  podTimes.begin(samples)
  const pace = createPace(clock, plan.createRate, places, signal)
  await progress.step(`Filling: ${targets.length} Deployments`, async (report) => {
    for (const target of targets) {
      await pace.next(async () => {
        const sentMs = clock.monotonicMs()
        const created = await timed(run, 'create Deployment', () => client.of(deployments).create(deploymentOf(plan.name, target), { fieldManager, signal }))
        if (created) deploymentTimes.begin('Deployment created', created, sentMs, samples)
        const autoscaler = autoscalerOf(target)
        if (autoscaler) await timed(run, 'create autoscaler', () => client.of(horizontalPodAutoscalers).create(autoscaler, { fieldManager, signal }))
      })
    }
    await pace.done()
    await settled(run, report)
  })
  return { samples, operations: { create: targets.length }, late: pace.late }
}

/** Resolves when all operations are done, or when the plan's time for that is over. */
async function settled({ clock, plan, podTimes, deploymentTimes, signal }: Run, report: (state: string) => void): Promise<void> {
  using time = deadlineScope({ clock, ms: plan.fillTimeoutMs }, signal)
  const isDone = () => {
    report(`${podTimes.ready} of ${podTimes.count} pods ready, ${deploymentTimes.pending} Deployments to go`)
    return deploymentTimes.pending === 0 ? true : undefined
  }
  await poll(clock, pollMs, isDone, time.signal).catch(() => signal.throwIfAborted())
}

async function churning(run: Run): Promise<Work> {
  const { clock, plan, podTimes, progress, signal } = run
  const { durationMs, rates, nodeDownMs } = plan.churn
  const samples = new Samples()
  podTimes.begin(samples)
  const flaps = rates.nodeFlap === undefined ? undefined : await createNodeFlaps({ ...run, downMs: nodeDownMs })
  const act: Readonly<Record<Operation, () => Promise<void>>> = {
    scale: () => scale(run, samples),
    rollOut: () => rollOut(run, samples),
    deletePod: () => deletePod(run),
    nodeFlap: async () => flaps?.next(),
  }
  const counts: Record<string, number> = {}
  let late = 0
  await progress.step('Churn', async (report) => {
    using time = deadlineScope({ clock, ms: durationMs }, signal)
    const loops = (Object.entries(rates) as [Operation, number][]).map(async ([operation, rate]) => {
      const pace = createPace(clock, rate, places, time.signal)
      counts[operation] = 0
      try {
        for (;;) {
          await pace.next(act[operation])
          counts[operation]++
        }
      } catch (error) {
        if (!time.signal.aborted) throw error
      }
      await pace.done()
      late += pace.late
    })
    try {
      await Promise.all(loops)
    } finally {
      await flaps?.heal()
    }
    signal.throwIfAborted()
    await settled(run, report)
  })
  return { samples, operations: counts, late }
}

const anyOf = <T>(items: readonly T[], random: Random) => items[random.int(items.length)] as T

async function scale(run: Run, samples: Samples): Promise<void> {
  const { random, targets } = run
  const target = anyOf(targets, random)
  await change(run, target, 'scale', { spec: { replicas: drawn(target.group.replicas, random) } }, samples)
}

async function rollOut(run: Run, samples: Samples): Promise<void> {
  const { random, targets } = run
  const template = { metadata: { annotations: { [`${loadLabel}-turn`]: String(random.int(2 ** 31)) } } }
  await change(run, anyOf(targets, random), 'rollout', { spec: { template } }, samples)
}

async function change(run: Run, { namespace, name }: Target, what: string, body: unknown, samples: Samples): Promise<void> {
  const { client, clock, deploymentTimes } = run
  const sentMs = clock.monotonicMs()
  const changed = await timed(run, `patch Deployment (${what})`, () => client.of(deployments).patch({ namespace, name }, 'merge', body, { fieldManager }))
  if (changed) deploymentTimes.begin(what, changed as Frozen<Deployment>, sentMs, samples)
}

async function deletePod(run: Run): Promise<void> {
  const ref = run.podTimes.any(run.random)
  if (!ref) return
  await timed(run, 'delete Pod', () =>
    run.client
      .of(pods)
      .delete(ref, { gracePeriodSeconds: 1 })
      .catch((error) => {
        // Another operation was faster.
        if (!isStatus(error, 'NotFound')) throw error
      }),
  )
}

/** Measures a request. A failure is counted, and the load continues. */
async function timed<T>({ clock, requests, failures, signal }: Run, what: string, request: () => Promise<T>): Promise<T | undefined> {
  const sentMs = clock.monotonicMs()
  try {
    const answer = await request()
    requests.add(what, clock.monotonicMs() - sentMs)
    return answer
  } catch (error) {
    signal.throwIfAborted()
    failures.add(what, messageOf(error))
    return undefined
  }
}

/** @returns milliseconds until the namespaces were gone */
async function removal({ client, clock, plan, podTimes, progress, signal }: Run): Promise<number> {
  const startedMs = clock.monotonicMs()
  const names = namespacesOf(plan).map(({ metadata }) => metadata.name ?? '')
  await progress.step('Removing the load', async (report) => {
    for (const name of names) await client.of(namespaces).delete({ name })
    using time = deadlineScope({ clock, ms: plan.fillTimeoutMs }, signal)
    const labelSelector = `${loadLabel}=${plan.name}`
    const isGone = async () => {
      const { items } = await client.of(namespaces).list({ labelSelector })
      report(`${items.length} namespaces, ${podTimes.count} pods`)
      return items.length === 0 ? true : undefined
    }
    await poll(clock, pollMs, isGone, time.signal).catch((error) => {
      signal.throwIfAborted()
      if (!time.signal.aborted) throw error
      throw new CommandError('timeout', 'the namespaces of the load are not gone', { hint: `kubectl get namespaces -l ${labelSelector} -o yaml` })
    })
  })
  return clock.monotonicMs() - startedMs
}
