/** Higher priority first, then who waited longer (L3). Upstream: plugins/queuesort. */
import { podPriority } from '#api/helpers/pods'
import { definePlugin } from '../framework/plugin.ts'

export const prioritySort = definePlugin('PrioritySort', () => ({
  requeueOn: [],
  less: (a, b) => podPriority(b.pod) - podPriority(a.pod) || a.sinceMs - b.sinceMs,
}))
