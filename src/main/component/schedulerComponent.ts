/** The scheduler with the caches and the recorder of events that it needs (L5), the same alone and in a local cluster. */
import os from 'node:os'
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { eventSeriesRecorders } from '#client/eventSeriesRecorder'
import { createScheduler, defaultSchedulerConfig, type SchedulerConfig, type SchedulerDeps } from '#scheduler/scheduler'

export type SchedulerTools = Pick<SchedulerDeps, 'clock' | 'random' | 'log' | 'metrics' | 'decisions' | 'explainer'> & {
  readonly minWatchSeconds?: number | undefined
}

/** Each run begins with empty caches. */
export function schedulerComponent(client: Client, tools: SchedulerTools, config: SchedulerConfig = defaultSchedulerConfig): Component {
  return {
    name: 'kube-scheduler',
    async run(signal) {
      using ended = abortScope(signal)
      const informers = createSharedInformerFactory(client, tools)
      const events = eventSeriesRecorders({ ...tools, client }, os.hostname(), ended.signal)
      const caching = informers.run(ended.signal)
      try {
        await createScheduler({ ...tools, client, informers, events }, config).run(ended.signal)
      } finally {
        ended.abort(new Error('the scheduler has ended'))
        await caching
      }
    },
  }
}
