/**
 * Starts a CronJob's jobs when they are due, and removes them (L3). schedule.ts knows the times; the job's name follows from its time, so that
 * none is started twice. Upstream: the second half of syncCronJob in pkg/controller/cronjob/cronjob_controllerv2.go (v1.36).
 */
import type { CronJob, CronJobStatus, Job } from '#api/gen/types/batch.v1'
import { type CronSchedule, parseCronSchedule } from '#api/helpers/cronSchedule'
import { controllerReference, isControlledBy } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { exponentialBuckets, type Metrics } from '#base/metrics'
import { formatTime } from '#base/time'
import { jobs } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'
import { type EventRecorder, referenceOf } from '#client/eventRecorder'
import type { Result } from '../framework/reconciler.ts'
import { isNamespaceTerminating } from '../shared/podControl.ts'
import { hasMissedMany, mostRecentTime, nextTime, timeOf } from './schedule.ts'
import { TimeZones, utc, type Zone } from './timeZones.ts'

/** A little late, so that a coarse clock does not wake us before the time. */
const afterDueMs = 100

export interface StarterDeps {
  readonly client: Client
  readonly clock: Clock
  readonly events: EventRecorder
  readonly metrics: Metrics
}

export interface Starter {
  /** Starts the job that is due, if one is, and notes it in `status`. @returns when the next will be */
  startWhenDue(cron: Frozen<CronJob>, status: CronJobStatus, signal: AbortSignal): Promise<Result | undefined>
  /** Undefined when there is no next time. */
  msUntilNext(cron: Frozen<CronJob>): number | undefined
  remove(cron: Frozen<CronJob>, job: { readonly namespace?: string | undefined; readonly name?: string | undefined }, signal: AbortSignal): Promise<void>
}

export function createStarter({ client, clock, events, metrics }: StarterDeps): Starter {
  const skew = metrics.histogram({
    name: 'cronjob_controller_job_creation_skew_duration_seconds',
    help: 'How much later than its scheduled time a job was created, in seconds.',
    buckets: exponentialBuckets(1, 2, 10),
  })
  const zones = new TimeZones()
  return { startWhenDue, msUntilNext, remove }

  async function remove(
    cron: Frozen<CronJob>,
    { namespace, name = '' }: { readonly namespace?: string | undefined; readonly name?: string | undefined },
    signal: AbortSignal,
  ) {
    try {
      await client.of(jobs).delete({ namespace, name }, { propagationPolicy: 'Background', signal })
      events.event(cron, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`)
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }

  /** Tells in an event what makes a schedule useless. */
  function scheduleOf(cron: Frozen<CronJob>): ZonedSchedule | undefined {
    const read = readSchedule(cron, zones)
    if ('reason' in read) events.event(cron, 'Warning', read.reason, read.message)
    return 'reason' in read ? undefined : read
  }

  function msUntilNext(cron: Frozen<CronJob>): number | undefined {
    const read = readSchedule(cron, zones)
    if ('reason' in read) return undefined
    const { schedule, zone } = read
    const nowMs = clock.now()
    const sinceMs = startOf(cron) ?? nowMs
    // From the last time that was, so that intervals keep their rhythm.
    const lastMs = mostRecentTime(schedule, sinceMs, nowMs, zone) ?? sinceMs
    const nextMs = nextTime(schedule, lastMs, zone)
    return nextMs === undefined ? undefined : nextMs - nowMs + afterDueMs
  }

  async function startWhenDue(cron: Frozen<CronJob>, status: CronJobStatus, signal: AbortSignal): Promise<Result | undefined> {
    const { startingDeadlineSeconds, concurrencyPolicy } = cron.spec
    const read = scheduleOf(cron)
    if (!read) return undefined
    const { schedule, zone } = read
    const nowMs = clock.now()
    const wait: Result = { requeueAfterMs: msUntilNext(cron) }
    // Times older than startingDeadlineSeconds are ignored.
    const deadlineMs = startingDeadlineSeconds === undefined ? Number.NEGATIVE_INFINITY : nowMs - startingDeadlineSeconds * 1000
    const sinceMs = Math.max(startOf(cron) ?? nowMs, deadlineMs)
    if (nextTime(schedule, sinceMs, zone) === undefined) {
      const why = 'time difference between two schedules is less than 1 second'
      events.event(cron, 'Warning', 'InvalidSchedule', `invalid schedule: ${cron.spec.schedule} : ${why}`)
      return undefined
    }
    const dueMs = mostRecentTime(schedule, sinceMs, nowMs, zone)
    if (dueMs === undefined) return wait
    if (hasMissedMany(schedule, sinceMs, nowMs, zone)) {
      const message = 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew'
      events.event(cron, 'Warning', 'TooManyMissedTimes', message)
    }
    if (concurrencyPolicy === 'Forbid' && status.active?.length) {
      events.event(cron, 'Normal', 'JobAlreadyActive', 'Not starting job because prior execution is running and concurrency policy is Forbid')
      return wait
    }
    if (concurrencyPolicy === 'Replace') {
      for (const reference of status.active ?? []) await remove(cron, reference, signal)
      delete status.active
    }
    const job = await start(cron, dueMs, signal)
    if (!job) return wait
    if (!status.active?.some(({ uid }) => uid === job.metadata.uid)) status.active = [...(status.active ?? []), referenceOf(job)]
    status.lastScheduleTime = formatTime(dueMs)
    return wait
  }

  /** The job of this time; its name follows from the time, so that it cannot be started twice. */
  async function start(cron: Frozen<CronJob>, dueMs: number, signal: AbortSignal): Promise<Frozen<Job> | undefined> {
    const wanted = jobOf(cron, dueMs)
    try {
      const job = await client.of(jobs).create(wanted, { signal })
      skew.observe(((timeOf(job.metadata.creationTimestamp) ?? dueMs) - dueMs) / 1000)
      events.event(cron, 'Normal', 'SuccessfulCreate', `Created job ${job.metadata.name}`)
      return job
    } catch (error) {
      if (isNamespaceTerminating(error)) return undefined
      if (isStatus(error, 'AlreadyExists')) {
        const there = await client.of(jobs).get({ namespace: cron.metadata.namespace, name: wanted.metadata.name ?? '' }, { signal })
        if (isControlledBy(there, cron)) return there
      }
      events.event(cron, 'Warning', 'FailedCreate', `Error creating job: ${messageOf(error)}`)
      throw error
    }
  }
}

/** Times up to this one are settled. */
const startOf = (cron: Frozen<CronJob>) => timeOf(cron.status?.lastScheduleTime) ?? timeOf(cron.metadata.creationTimestamp)

interface ZonedSchedule {
  readonly schedule: CronSchedule
  readonly zone: Zone
}

/** The parsed schedule, or the event's message about an invalid one. */
function readSchedule(
  { spec: { schedule: text, timeZone } }: Frozen<CronJob>,
  zones: TimeZones,
): ZonedSchedule | { readonly reason: string; readonly message: string } {
  const zone = timeZone ? zones.of(timeZone) : utc
  if (!zone) return { reason: 'UnknownTimeZone', message: `invalid timeZone: ${JSON.stringify(timeZone)}: unknown time zone ${timeZone}` }
  const schedule = parseCronSchedule(text)
  return 'fault' in schedule
    ? { reason: 'UnparseableSchedule', message: `unparseable schedule: ${JSON.stringify(text)} : ${schedule.fault}` }
    : { schedule, zone }
}

const jobName = (cron: Frozen<CronJob>, dueMs: number) => `${cron.metadata.name}-${Math.floor(dueMs / 60_000)}`

function jobOf(cron: Frozen<CronJob>, dueMs: number): NewObject<Job> {
  const { metadata, spec } = cron.spec.jobTemplate
  return {
    metadata: {
      namespace: cron.metadata.namespace,
      name: jobName(cron, dueMs),
      ...(metadata?.labels ? { labels: { ...metadata.labels } } : {}),
      annotations: { ...metadata?.annotations, 'batch.kubernetes.io/cronjob-scheduled-timestamp': formatTime(dueMs) },
      ownerReferences: [controllerReference(cron)],
    },
    spec: deepCopy<Job['spec']>(spec as Frozen<Job['spec']>),
  }
}
