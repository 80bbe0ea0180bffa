/** The scheduler with the caches and the recorder of events that it needs (L5), the same alone and in a local cluster. */
import os from 'node:os'
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { pods } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { eventSeriesRecorders } from '#client/eventSeriesRecorder'
import { createScheduler, defaultSchedulerConfig, type SchedulerConfig, type SchedulerDeps } from '#scheduler/scheduler'
import type { PodResources } from './podResourcesPage.ts'

export type SchedulerTools = Pick<SchedulerDeps, 'clock' | 'random' | 'log' | 'metrics' | 'tracer' | 'decisions' | 'explainer' | 'trace'> & {
  readonly minWatchSeconds?: number | undefined
  /** Shows what the pods ask for while the scheduler runs. */
  readonly podResources?: Pick<PodResources, 'show'> | undefined
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
      const hide = tools.podResources?.show(() => informers.of(pods).store.list())
      try {
        await createScheduler({ ...tools, client, informers, events }, config).run(ended.signal)
      } finally {
        hide?.()
        ended.abort(new Error('the scheduler has ended'))
        await caching
      }
    },
  }
}
