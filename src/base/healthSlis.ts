/**
 * /metrics/slis (L0): the last result of every health check, and how often each succeeded and failed. Kept by itself, so that availability can be
 * scraped often without the rest of the metrics. Upstream: component-base/metrics/prometheus/slis.
 */
import { familyText, labelPair, sampleLine } from './prometheusText.ts'

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

  /** The metrics in Prometheus' text form, sorted. */
  text(): string {
    const tallies = [...this.#tallies].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tally]) => tally)
    const last = tallies.map((tally) => sampleLine('kubernetes_healthcheck', labelsOf(tally), tally.isWell ? 1 : 0))
    const total = tallies.flatMap((tally) =>
      (['error', 'success'] as const)
        .filter((status) => tally[status] > 0)
        .map((status) => sampleLine('kubernetes_healthchecks_total', labelsOf(tally, status), tally[status])),
    )
    return (
      familyText({ name: 'kubernetes_healthcheck', type: 'gauge', help: '[STABLE] Whether a health check last succeeded.' }, last) +
      familyText({ name: 'kubernetes_healthchecks_total', type: 'counter', help: '[STABLE] How often a health check ended in each status.' }, total)
    )
  }
}

/** In the order of their names. */
function labelsOf({ name, root }: Tally, status?: string): string[] {
  return [labelPair('name', name), ...(status === undefined ? [] : [labelPair('status', status)]), labelPair('type', root)]
}
