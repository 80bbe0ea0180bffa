/**
 * /metrics/slis (L0): the last result of every health check, and how often each succeeded and failed. Kept by itself, so that availability can be
 * scraped often without the rest of the metrics. Upstream: component-base/metrics/prometheus/slis.
 */
import { labelsText, type MetricFamily } from './metricFamily.ts'

interface Tally {
  readonly name: string
  readonly root: string
  isWell: boolean
  success: number
  error: number
}

export class HealthSlis {
  readonly #tallies = new Map<string, Tally>()

  /** @param root livez, readyz or healthz: the endpoint of the request */
  observe(name: string, root: string, isWell: boolean): void {
    const key = `${name}\n${root}`
    let tally = this.#tallies.get(key)
    if (!tally) {
      tally = { name, root, isWell, success: 0, error: 0 }
      this.#tallies.set(key, tally)
    }
    tally.isWell = isWell
    tally[isWell ? 'success' : 'error']++
  }

  /** The metrics, sorted. */
  families(): MetricFamily[] {
    const tallies = [...this.#tallies].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tally]) => tally)
    const last = tallies.map((tally) => ({ labels: labelsOf(tally), value: tally.isWell ? 1 : 0 }))
    const total = tallies.flatMap((tally) =>
      (['error', 'success'] as const).filter((status) => tally[status] > 0).map((status) => ({ labels: labelsOf(tally, status), value: tally[status] })),
    )
    return [
      { name: 'kubernetes_healthcheck', type: 'gauge', help: '[STABLE] Whether a health check last succeeded.', samples: last },
      { name: 'kubernetes_healthchecks_total', type: 'counter', help: '[STABLE] How often a health check ended in each status.', samples: total },
    ]
  }
}

/** In the order of their names. */
function labelsOf({ name, root }: Tally, status?: string): string {
  return labelsText({ name, ...(status === undefined ? {} : { status }), type: root })
}
