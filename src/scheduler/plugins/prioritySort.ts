/** Higher priority first, then who waited longer (L3). Upstream: plugins/queuesort. */
import { podPriority } from '#api/helpers/pods'
import type { SchedulerPlugin } from '../framework/plugin.ts'

export const prioritySort: SchedulerPlugin = {
  name: 'PrioritySort',
  less: (a, b) => podPriority(b.pod) - podPriority(a.pod) || a.sinceMs - b.sinceMs,
}
