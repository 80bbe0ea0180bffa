/** Events about the result of a job (L3). Upstream: pkg/controller/job/job_controller.go, recordJobFinished (v1.36). */
import type { Job } from '#api/gen/types/batch.v1'
import type { Frozen } from '#api/machinery/meta'
import type { EventRecorder } from '#client/eventRecorder'
import { conditionIsTrue } from './plan.ts'

export function reportJob(events: EventRecorder, before: Frozen<Job>, after: Frozen<Job>): void {
  const became = (type: string) => !conditionIsTrue(before, type) && conditionIsTrue(after, type)
  if (became('Complete')) {
    const { completions } = after.spec
    if (completions !== undefined && (after.status?.succeeded ?? 0) > completions) {
      events.event(after, 'Warning', 'TooManySucceededPods', 'Too many succeeded pods running after completion count reached')
    }
    events.event(after, 'Normal', 'Completed', 'Job completed')
  }
  if (became('Suspended')) events.event(after, 'Normal', 'Suspended', 'Job suspended')
  if (conditionIsTrue(before, 'Suspended') && !conditionIsTrue(after, 'Suspended')) events.event(after, 'Normal', 'Resumed', 'Job resumed')
  const failed = became('Failed') ? after.status?.conditions?.find(({ type }) => type === 'Failed') : undefined
  if (failed) events.event(after, 'Warning', failed.reason ?? 'Failed', failed.message ?? '')
}
