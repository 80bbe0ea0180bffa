/**
 * /metrics/slis (L0): the last result of every health check, and how often each succeeded and failed. Kept by itself, so that availability can be
 * scraped often without the rest of the metrics. Upstream: component-base/metrics/prometheus/slis.
 */

interface Tally {
  readonly labels: string
  isWell: boolean
  success: number
  error: number
}

export class HealthSlis {
  readonly #tallies = new Map<string, Tally>()

  /** @param root livez, readyz or healthz: the endpoint that was asked */
  observe(name: string, root: string, isWell: boolean): void {
    const labels = `name=${JSON.stringify(name)},type=${JSON.stringify(root)}`
    let tally = this.#tallies.get(labels)
    if (!tally) {
      tally = { labels, isWell, success: 0, error: 0 }
      this.#tallies.set(labels, tally)
    }
    tally.isWell = isWell
    tally[isWell ? 'success' : 'error']++
  }

  /** The metrics in Prometheus' text form, sorted. */
  text(): string {
    const tallies = [...this.#tallies.values()].sort((a, b) => (a.labels < b.labels ? -1 : 1))
    const last = tallies.map(({ labels, isWell }) => `kubernetes_healthcheck{${labels}} ${isWell ? 1 : 0}`)
    const total = tallies.flatMap(({ labels, ...tally }) =>
      (['error', 'success'] as const)
        .filter((status) => tally[status] > 0)
        .map((status) => `kubernetes_healthchecks_total{${nameAndStatus(labels, status)}} ${tally[status]}`),
    )
    const lines = [
      ...family('kubernetes_healthcheck', 'gauge', 'Whether a health check last succeeded.', last),
      ...family('kubernetes_healthchecks_total', 'counter', 'How often a health check ended in each status.', total),
    ]
    return lines.map((line) => `${line}\n`).join('')
  }
}

/** Labels are printed in the order of their names. */
function nameAndStatus(labels: string, status: string): string {
  return labels.replace(/,type=/, `,status="${status}",type=`)
}

function family(name: string, type: string, help: string, series: readonly string[]): string[] {
  return series.length === 0 ? [] : [`# HELP ${name} [STABLE] ${help}`, `# TYPE ${name} ${type}`, ...series]
}
