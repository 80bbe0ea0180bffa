/** Why a CronJob starts no Job (L2). */
import type { CronJob, Job } from '#api/gen/types/batch.v1'
import { isControlledBy } from '#api/helpers/owners'
import { isConditionTrue } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { explainJob } from './job.ts'
import { refusalCause } from './refusals.ts'
import { eventText, type View } from './view.ts'

export async function explainCronJob(cron: Frozen<CronJob>, view: View): Promise<Explanation> {
  const { lastScheduleTime, active = [] } = cron.status ?? {}
  const state = `${lastScheduleTime === undefined ? 'it has started no Job yet' : `its last Job started ${lastScheduleTime}`}, ${active.length} active`
  return { state, causes: await causesOf(cron, view) }
}

async function causesOf(cron: Frozen<CronJob>, view: View): Promise<readonly Cause[]> {
  const { namespace, name = '' } = cron.metadata
  const { suspend, schedule, timeZone, concurrencyPolicy } = cron.spec
  const [running] = cron.status?.active ?? []
  if (suspend)
    return [{ text: 'it is suspended', evidence: 'spec.suspend true', next: kubectl(namespace, 'patch', 'cronjob', name, '-p', '{"spec":{"suspend":false}}') }]
  const [newest] = await view.eventsOf(cron)
  if (newest?.reason === 'FailedCreate') return [await refusalCause(newest.message ?? '', eventText(newest), namespace ?? '', view)]
  if (newest?.type === 'Warning')
    return [
      {
        text: `its schedule starts no Job: ${newest.message}`,
        evidence: `spec.schedule ${schedule}${timeZone === undefined ? '' : `, spec.timeZone ${timeZone}`}, event ${newest.reason}`,
        next: kubectl(namespace, 'edit', 'cronjob', name),
      },
    ]
  if (concurrencyPolicy === 'Forbid' && running && newest?.reason === 'JobAlreadyActive')
    return [
      {
        text: `it starts no other Job while ${running.name} runs`,
        evidence: 'spec.concurrencyPolicy Forbid, event JobAlreadyActive',
        next: skiffWhy('job', running.name ?? '', namespace),
      },
    ]
  return lastJobCauses(cron, view)
}

async function lastJobCauses(cron: Frozen<CronJob>, view: View): Promise<readonly Cause[]> {
  const jobs = await view.list<Job>('jobs', cron.metadata.namespace)
  const time = ({ metadata }: Frozen<Job>) => metadata.creationTimestamp ?? ''
  const [last] = (jobs ?? []).filter((job) => isControlledBy(job, cron)).sort((one, other) => time(other).localeCompare(time(one)))
  if (!last || isConditionTrue(last.status?.conditions, 'Complete')) return []
  return (await explainJob(last, view)).causes.map((cause) => ({ ...cause, text: `its last Job ${last.metadata.name}: ${cause.text}` }))
}
