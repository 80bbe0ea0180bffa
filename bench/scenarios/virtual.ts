/** A whole cluster under virtual time: how long a day of a CronJob takes, and how much of the processor. */
import { inOwnProcess } from '../cluster/ownProcess.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { rounded } from '../tools/statistics.ts'

interface Load {
  readonly what: string
  readonly schedule: string
  readonly hours: number
  readonly atMost?: number
}

const loads: readonly Load[] = [
  { what: 'a day of an hourly job', schedule: '0 * * * *', hours: 24, atMost: 2 },
  { what: 'a day of a job every five minutes', schedule: '*/5 * * * *', hours: 24, atMost: 2 },
  { what: 'a day of a job every minute', schedule: '* * * * *', hours: 24 },
  { what: '30 days of a daily job', schedule: '0 3 * * *', hours: 30 * 24, atMost: 2 },
]

export const virtual: Scenario = {
  name: 'virtual',
  about: 'CronJobs on a whole cluster with one simulated node, under virtual time',
  run: async ({ progress, signal }) => {
    const measured: Measurement[] = []
    for (const { what, schedule, hours, atMost } of loads) {
      progress(what)
      const { ms, changes, cpuMicros, rssMB } = await inOwnProcess('virtual', { schedule, hours }, signal)
      const note = `CPU ${rounded(cpuMicros / 1e6)} s, ${changes} changes of the store, ${rounded(rssMB)} MB`
      measured.push({ what, unit: 's', values: [ms / 1000], target: atMost === undefined ? undefined : { atMost }, note })
    }
    return measured
  },
}
